/** Attacks on the console, and what stops each. */
import { describe, it } from "@effect/vitest"
import { attacks } from "./attacks/all.ts"

describe("an attack", () => {
  it.effect.each(attacks)("$name", ({ run }) => run)
})
