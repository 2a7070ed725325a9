// Bodies under gravity, as objects that are made anew in each step.
const [count, steps] = process.argv.slice(2).map(Number);
let state = 1;
const draw = () => (state = (state * 48271) % 2147483647) / 2147483647;
let bodies = Array.from({ length: count }, () => ({ x: draw(), y: draw(), u: 0, v: 0, mass: draw() }));
for (let step = 0; step < steps; step++) {
  bodies = bodies.map((own) => {
    const pull = bodies.reduce((sum, other) => {
      const [dx, dy] = [other.x - own.x, other.y - own.y];
      const far = other.mass / Math.pow(dx * dx + dy * dy + 0.01, 1.5);
      return { x: sum.x + dx * far, y: sum.y + dy * far };
    }, { x: 0, y: 0 });
    const [u, v] = [own.u + 1e-4 * pull.x, own.v + 1e-4 * pull.y];
    return { ...own, u, v, x: own.x + 1e-3 * u, y: own.y + 1e-3 * v };
  });
}
console.log(JSON.stringify(bodies.slice(0, 3).map((own) => own.x.toFixed(6))));
