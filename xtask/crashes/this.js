class Base {}
class Derived extends Base {
  constructor() {
    (() => {
      for (const name in this) {}
      eval("");
    })();
  }
}
new Derived();
