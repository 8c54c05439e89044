/**
 * A case is a sentence that users may rely on, and the program that proves the sentence on any broker.
 *
 * Cases are values. They sleep on Effect's Clock and wait for events with a deadline, so the same case runs in virtual time
 * on a broker inside the process, and in real time on a real one.
 */
import { Broker } from "@requeue/core"
import { type Capabilities } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Failure, Harness, type Operation } from "./Harness.ts"
import * as Lab from "./Lab.ts"

/** The optional abilities of a harness. */
export interface HarnessAbilities {
  readonly cutConnections: boolean
  readonly restart: boolean
  readonly crash: boolean
  readonly powerCut: boolean
  readonly another: boolean
  readonly deleteQueue: boolean
  readonly foreignQueue: boolean
  readonly transactions: boolean
  /** Whether the harness can make this call fail in this way. */
  readonly failNext: (operation: Operation, failure: Failure) => boolean
}

/** The abilities of a broker and its harness, which decide which cases apply. */
export interface Abilities {
  readonly capabilities: Capabilities.Capabilities
  /** Which optional abilities the harness has. */
  readonly harness: HarnessAbilities
}

/** Returns `undefined` when a case applies, else the name of the missing ability for the ledger. */
export type Requirement = (abilities: Abilities) => string | undefined

/** The services that a case runs with. Its consumers end with the scope. */
export type Requirements = Broker.Broker | Harness | Scope.Scope

/** One case of the suite. */
export interface Case {
  /** The sentence that the case proves; unique in the suite. */
  readonly name: string
  /** The heading under which the suite's report lists the case. */
  readonly group: string
  /** When the case applies. Default: always. */
  readonly requires?: Requirement
  /** Fails when the broker does not do what the name says. */
  readonly run: Effect.Effect<void, unknown, Requirements>
}

/** A harness with every ability that affects one queue only, and none that affects all queues. */
const discreet: HarnessAbilities = {
  cutConnections: false,
  restart: false,
  crash: false,
  powerCut: false,
  another: true,
  deleteQueue: true,
  foreignQueue: true,
  transactions: true,
  failNext: () => false
}

/**
 * Whether a case cuts connections, restarts the broker or makes a call fail: then no other case may run at the same time.
 * Cases that do none of this may run concurrently, each on its own queue.
 *
 * @param own further abilities of this harness that disturb one queue only. Default: none
 */
export const isDisruptive = (
  { requires }: Case,
  capabilities: Capabilities.Capabilities,
  own: Partial<HarnessAbilities> = {}
): boolean => requires?.({ capabilities, harness: { ...discreet, ...own } })?.startsWith("harness.") === true

/** The body of a case, as a generator function that gets the tools of {@link Lab.Lab}. */
export type Body = (lab: Lab.Lab) => Generator<Effect.Effect<unknown, unknown, Requirements>, void>

/** The body of a case, as a function from the tools of {@link Lab.Lab} to an Effect. */
export type Program = (lab: Lab.Lab) => Effect.Effect<void, unknown, Requirements>

/** Makes the constructor for the cases of one group. Each case gets a {@link Lab.Lab} with its own queue. */
export const inGroup =
  (group: string) =>
  (name: string, body: Body | Program, requires?: Requirement): Case => ({
    name,
    group,
    ...(requires === undefined ? {} : { requires }),
    run: Effect.flatMap(Lab.make(group), (lab) => {
      const program = body(lab)
      return Effect.andThen(Effect.isEffect(program) ? program : Effect.gen(() => program), lab.checkLateness)
    })
  })

/** Reads the abilities of the provided broker and harness. */
export const abilities: Effect.Effect<Abilities, never, Broker.Broker | Harness> = Effect.gen(function* () {
  const { capabilities } = yield* Broker.Broker
  const harness = yield* Harness
  const has = (name: Exclude<keyof HarnessAbilities, "failNext">): boolean => harness[name] !== undefined
  return {
    capabilities,
    harness: {
      cutConnections: has("cutConnections"),
      restart: has("restart"),
      crash: has("crash"),
      powerCut: has("powerCut"),
      another: has("another"),
      deleteQueue: has("deleteQueue"),
      foreignQueue: has("foreignQueue"),
      transactions: has("transactions"),
      failNext: (operation, failure) => harness.failNext?.(operation, failure, "") !== undefined
    }
  }
})
