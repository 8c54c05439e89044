/** Attacks as values, so that they are tried on the console, and on one that is broken on purpose. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** An attack: it fails where the console lets it happen. */
export interface Attack {
  readonly name: string
  readonly run: Effect.Effect<unknown, unknown, Scope.Scope>
}

/** An attack with its name. */
export const make = (name: string, run: () => Attack["run"]): Attack => ({ name, run: Effect.suspend(run) })
