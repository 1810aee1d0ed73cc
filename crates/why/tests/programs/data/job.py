import collections
import concurrent.futures
import decimal
import hashlib
import json
import queue
import re
import subprocess
import sys
import threading
import zlib

words = open(sys.argv[1]).read()
print(collections.Counter(words.split()).most_common(3))
print(hashlib.sha256(words.encode()).hexdigest(), zlib.crc32(words.encode()))
print(len(re.findall(r"\b(\w+) \1\b", words)))
tree = {"name": "oak", "leaves": [{"id": i, "area": i / 7} for i in range(50)]}
assert json.loads(json.dumps(tree)) == tree
decimal.getcontext().prec = 60
print(decimal.Decimal(2).sqrt(), 3**400 % 10**30)


def worker(box, total):
    while (item := box.get()) is not None:
        total.append(item * item)


box, total = queue.Queue(), []
threads = [threading.Thread(target=worker, args=(box, total)) for _ in range(4)]
for thread in threads:
    thread.start()
for i in range(1000):
    box.put(i)
for _ in threads:
    box.put(None)
for thread in threads:
    thread.join()
print(sum(total))
with concurrent.futures.ProcessPoolExecutor(2) as pool:
    print(list(pool.map(hex, range(5))))
print(subprocess.run(["sort", "-r"], input="a\nb\nc\n", capture_output=True, text=True).stdout.split())


class Node:
    def __init__(self, depth):
        self.children = [Node(depth - 1) for _ in range(2)] if depth else []

    def count(self):
        return 1 + sum(child.count() for child in self.children)


print(Node(10).count(), sum(i * i % 7 for i in range(100000)))
try:
    [][1]
except IndexError as error:
    print("caught", error)
