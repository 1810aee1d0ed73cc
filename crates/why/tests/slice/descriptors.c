/* Gets the fifth byte of a file in one of several ways, and by then has read the first four. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
char first, fifth;

static void skip(int descriptor)
{
    char bytes[4];
    if (read(descriptor, bytes, 4) != 4) exit(1);
    first = bytes[0]; /* first */
}

/* Waits until the other process is gone. */
static void skip_in_another(int descriptor)
{
    if (fork() == 0) {
        skip(descriptor);
        _exit(0);
    }
    wait(0);
}

/* A guest in this memory, which has descriptors of its own. */
static void close_in_guest(int descriptor)
{
    if (vfork() == 0) {
        close(descriptor);
        _exit(0);
    }
    wait(0);
}

static int again(const char *directory, int descriptor)
{
    char path[64];
    sprintf(path, "%s/%d", directory, descriptor);
    return open(path, O_RDONLY);
}

static int sent(int file)
{
    int ends[2];
    if (pipe(ends) || sendfile(ends[1], file, 0, 1) != 1) exit(1);
    return ends[0];
}

int main(int count, char **arguments)
{
    int file = open(arguments[1], O_RDONLY), from = file;
    char byte;
    struct iovec part = {&byte, 1};
    switch (arguments[2][0]) {
    case 'd': skip(dup(file)); break;
    case 'f': from = fcntl(file, F_DUPFD, 10); skip(file); close(file); break;
    case 'c': from = fcntl(file, F_DUPFD_CLOEXEC, 10); skip(from); break;
    case 'o': from = again("/proc/self/fd", file); skip(file); skip(from); break;
    case 'O': from = again("/dev/fd", file); skip(from); break;
    case 'i': skip(0); from = open("/dev/stdin", O_RDONLY); break;
    case 'k': skip_in_another(file); break;
    case 'g': skip(file); close_in_guest(file); break;
    case 't': skip(file); from = sent(file); break;
    default: skip(file);
    }
    switch (arguments[2][0]) {
    case 's': byte = *((char *)mmap(0, 4096, PROT_READ, MAP_SHARED, file, 0) + 4); break;
    case 'v': preadv2(file, &part, 1, 4, 0); break;
    case 'V': preadv2(file, &part, 1, -1, 0); break;
    default: read(from, &byte, 1);
    }
    fifth = byte; /* fifth */
    return 0;
}
