// Enough iterations that every function is compiled, some with assumptions that
// later turn out wrong, so that compiled code is thrown away again.
const { Worker, isMainThread, parentPort } = require("worker_threads");

function hash(text) {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return h >>> 0;
}

function sieve(limit) {
  const composite = new Uint8Array(limit + 1);
  let count = 0;
  for (let i = 2; i <= limit; i++) {
    if (composite[i]) continue;
    count++;
    for (let j = i * i; j <= limit; j += i) composite[j] = 1;
  }
  return count;
}

function add(a, b) {
  return a + b;
}

if (!isMainThread) {
  parentPort.postMessage(sieve(100000));
} else {
  let sum = 0;
  for (let i = 0; i < 300000; i++) sum = add(sum, i);
  let text = "";
  for (let i = 0; i < 1000; i++) text = add(text, String.fromCharCode(97 + (i % 26)));
  console.log(sum, hash(text), sieve(300000));

  class Point {
    constructor(x, y) { this.x = x; this.y = y; }
    dot(other) { return this.x * other.x + this.y * other.y; }
  }
  const points = Array.from({ length: 20000 }, (_, i) => new Point(i % 97, i % 89));
  console.log(points.reduce((total, p, i) => total + p.dot(points[(i * 7) % points.length]), 0));
  points.push({ x: 1.5, dot: () => 0.5 });
  console.log(points.reduce((total, p) => total + p.x, 0));
  console.log(points.slice(0, 2000).sort((a, b) => a.x - b.x || b.y - a.y)[1000]);
  console.log(text.replace(/([aeiou])(.)/g, "$2$1").length, JSON.parse(JSON.stringify(points)).length);

  const wasm = new Uint8Array([
    0, 97, 115, 109, 1, 0, 0, 0, 1, 7, 1, 96, 2, 127, 127, 1, 127, 3, 2, 1, 0, 7, 7, 1, 3, 97, 100,
    100, 0, 0, 10, 9, 1, 7, 0, 32, 0, 32, 1, 106, 11,
  ]);
  const { add: wasmAdd } = new WebAssembly.Instance(new WebAssembly.Module(wasm)).exports;
  let w = 0;
  for (let i = 0; i < 100000; i++) w = wasmAdd(w, i);
  console.log(w);
  console.log(new Function("n", "let s = 0; for (let i = 0; i < n; i++) s += i % 3; return s")(100000));
  const big = 2n ** 521n - 1n;
  console.log(big % 1000000007n);
  new Worker(__filename).on("message", (count) => console.log("worker:", count));
  setTimeout(() => console.log("timer"), 1);
  process.on("exit", (code) => console.log("exit", code));
}
