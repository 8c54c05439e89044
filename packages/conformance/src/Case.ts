/**
 * A case: one sentence about what a user may rely on, and the program that proves it on any broker.
 *
 * Cases are values. They sleep on Effect's Clock and wait for events with a deadline, so the same case runs in virtual
 * time on a broker inside the process, and in real time on a real one.
 */
import { Broker, type Capabilities } from "@requeue/core"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Harness } from "./Harness.ts"
import * as Lab from "./Lab.ts"

/** What decides whether a case applies. */
export interface Facts {
  readonly capabilities: Capabilities.Capabilities
  /** What the harness can do. */
  readonly harness: { readonly cutConnections: boolean; readonly restart: boolean }
}

/** `undefined` when the case applies, else the capability that is missing, for the ledger. */
export type Requirement = (facts: Facts) => string | undefined

export type Requirements = Broker.Broker | Harness | Scope.Scope

export interface Case {
  /** Unique in the suite. */
  readonly name: string
  readonly group: string
  readonly requires?: Requirement
  readonly run: Effect.Effect<void, unknown, Requirements>
}

/**
 * Whether a case cuts connections or restarts the broker: then no other one may run beside it. All others may, each on a
 * queue of its own.
 */
export const isDisruptive = ({ requires }: Case, capabilities: Capabilities.Capabilities): boolean =>
  requires?.({ capabilities, harness: { cutConnections: false, restart: false } })?.startsWith("harness.") === true

/** What a case does in its laboratory. */
export type Body = (lab: Lab.Lab) => Generator<Effect.Effect<any, unknown, Requirements>, void>

/** The same as a function that answers an Effect. */
export type Program = (lab: Lab.Lab) => Effect.Effect<void, unknown, Requirements>

/** Builds the cases of one group; each gets a laboratory with a queue of its own. */
export const inGroup =
  (group: string) =>
  (name: string, body: Body | Program, requires?: Requirement): Case => ({
    name,
    group,
    ...(requires === undefined ? {} : { requires }),
    run: Effect.flatMap(Lab.make(group), (lab) => {
      const program = body(lab)
      return Effect.andThen(Effect.isEffect(program) ? program : Effect.gen(() => program), lab.judgeLateness)
    })
  })

/** The facts about the broker and the harness at hand. */
export const facts: Effect.Effect<Facts, never, Broker.Broker | Harness> = Effect.gen(function* () {
  const { capabilities } = yield* Broker.Broker
  const { cutConnections, restart } = yield* Harness
  return { capabilities, harness: { cutConnections: cutConnections !== undefined, restart: restart !== undefined } }
})
