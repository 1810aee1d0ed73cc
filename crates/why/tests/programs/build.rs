//! Compilers and make, and the programs they produce.

use crate::Program;
use crate::data::bash;
use crate::support::job::Job;
use crate::support::package;
use crate::support::why::Tool;

pub const PROGRAMS: &[Program] = &[
    Program::new("gcc", gcc).tools(&[Tool::None, Tool::Count]),
    Program::new("g++", gxx).tools(&[Tool::Count]),
    Program::new("make", make).tools(&[Tool::Count, Tool::Trace]),
];

fn project(script: &str) -> Job {
    let mut makefile = String::from(
        "CFLAGS = -O2\nOBJECTS = main.o shape.o text.o\n\
         project: $(OBJECTS)\n\t$(CC) -o $@ $(OBJECTS) -lm\n\
         %.o: %.c project.h\n\t$(CC) $(CFLAGS) -c -o $@ $<\n\
         .PHONY: many\nmany:",
    );
    // A storm of short processes, besides the compilers.
    for number in 0..40 {
        makefile += &format!(" stamp.{number}");
    }
    makefile += "\nstamp.%:\n\t@echo $* | tr 0-9 a-j > $@\n";
    bash(script)
        .file("Makefile", makefile)
        .file(
            "project.h",
            "double area(int sides, double length);\nchar *joined(char **words, int count);\n",
        )
        .file(
            "shape.c",
            "#include <math.h>\n#include \"project.h\"\n\
             double area(int n, double s) { return n * s * s / (4 * tan(acos(-1) / n)); }\n",
        )
        .file(
            "text.c",
            "#include <stdlib.h>\n#include <string.h>\n#include \"project.h\"\n\
             char *joined(char **w, int n) {\n  size_t all = 1;\n\
             for (int i = 0; i < n; i++) all += strlen(w[i]) + 1;\n\
             char *out = calloc(all, 1);\n\
             for (int i = 0; i < n; i++) strcat(strcat(out, i ? \" \" : \"\"), w[i]);\n\
             return out;\n}\n",
        )
        .file(
            "main.c",
            "#include <stdio.h>\n#include \"project.h\"\n\
             int main(int argc, char **argv) {\n\
             for (int n = 3; n < 12; n++) printf(\"%d %.6f\\n\", n, area(n, 2));\n\
             puts(joined(argv + 1, argc - 1));\n  return 0;\n}\n",
        )
        .limit(120)
}

fn gcc() -> Result<Job, String> {
    package::find("gcc")?;
    Ok(project(
        "for file in main shape text; do gcc -O2 -Wall -c $file.c; done\n\
         gcc -o project main.o shape.o text.o -lm; ./project linked by hand\n\
         gcc -O2 -flto -static -o static main.c shape.c text.c -lm; ./static with lto | tail -1\n\
         echo 'int main(void) { return missing; }' > bad.c; gcc -c bad.c || echo \"gcc says $?\"\n",
    ))
}

fn gxx() -> Result<Job, String> {
    package::find("g++")?;
    let source = r#"
#include <algorithm>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
template <typename T> T checked(const std::vector<T> &v, size_t i) { return v.at(i); }
int main() {
    std::map<std::string, std::vector<int>> table;
    for (int i = 0; i < 100; i++) table[std::to_string(i * 37 % 10)].push_back(i);
    for (auto &[key, list] : table) {
        std::sort(list.rbegin(), list.rend());
        std::cout << key << ' ' << list.front() << ' ' << list.size() << '\n';
    }
    try { checked(table["3"], 1000); } catch (const std::out_of_range &) { std::cout << "out of range\n"; }
}
"#;
    Ok(bash("g++ -std=c++17 -O1 -o table table.cc; ./table\n").file("table.cc", source).limit(120))
}

fn make() -> Result<Job, String> {
    package::find("make")?;
    Ok(project(
        "make -s -j2 project; ./project made; make -s -j2 many; cat stamp.* | md5sum\n\
         touch -d @0 project; make -s; make -q && echo \"up to date\"\n\
         make nothing || echo \"make says $?\"\n",
    ))
}
