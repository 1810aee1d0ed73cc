//! Tells builds of the engine apart: translations kept by one are of no use to
//! another that translates differently.

fn main() {
    why_stamp::set("WHY_ENGINE_BUILD", ["src", "../translate/src"].map(Into::into));
}
