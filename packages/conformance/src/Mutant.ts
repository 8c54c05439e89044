/**
 * A broker or a consumer that is broken on purpose, and the case that must fail on it. A case proves something only if it
 * fails on its mutant.
 */
import { Broker } from "@requeue/core"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import type * as Case from "./Case.ts"
import { cases as allCases } from "./Cases.ts"
import { Harness } from "./Harness.ts"
import * as Ledger from "./Ledger.ts"
import * as Measured from "./Measured.ts"
import { original, type Shape, Subject } from "./Subject.ts"
import * as Suite from "./Suite.ts"

/** A defect of a broker, a consumer or a producer, and the case that must find it. */
export interface Mutant {
  /** The mistake, in words. */
  readonly name: string
  /** The name of the case that must fail on the mutant. */
  readonly kills: string
  /** Returns the broken broker. `fork` runs an effect in the background. */
  readonly broker?: (broker: Broker.Service, fork: (effect: Effect.Effect<unknown, unknown>) => void) => Broker.Service
  /** Returns the broken consumer or producer. */
  readonly subject?: (subject: Shape) => Shape
}

/** A defect inside an adapter: it replaces one text in the adapter's own source. */
export interface Patch extends Pick<Mutant, "name" | "kills"> {
  /** The end of the path of the file to change. */
  readonly file: string
  /** The text to replace, which occurs once in the file. */
  readonly text: string
  /** The text that replaces it. */
  readonly replacement: string
}

/** Adds the mutant to a suite's layer. If the mutant breaks the broker, the broker is broken in every process. */
export const apply = <E>(
  { broker: mutate, subject }: Mutant,
  layer: Layer.Layer<Broker.Broker | Harness, E>
): Layer.Layer<Broker.Broker | Harness, E> => {
  const broken = Layer.effectContext(
    Effect.gen(function* () {
      const harness = yield* Harness
      const fork = Effect.runForkWith(yield* Effect.context())
      const mutated = (service: Broker.Service) => mutate?.(service, fork) ?? service
      const opened = (hook: Harness["Service"]["another"]) => hook && Effect.map(hook, mutated)
      const hooks = {
        another: opened(harness.another),
        crash: opened(harness.crash),
        powerCut: opened(harness.powerCut)
      }
      return Context.make(Broker.Broker, mutated(yield* Broker.Broker)).pipe(
        Context.add(Harness, { ...harness, ...hooks }),
        Context.add(Subject, subject?.(original) ?? original)
      )
    })
  )
  return Layer.provideMerge(broken, layer)
}

/** Whether the case found the mutant. */
export type Verdict =
  | { readonly _tag: "Killed"; readonly error: unknown }
  /** The case passes on the mutant, or does not apply to this broker. */
  | { readonly _tag: "Survived"; readonly outcome: Ledger.Outcome }
  /** At each measurement the machine was too late for a verdict. See {@link report}. */
  | { readonly _tag: "NotMeasurable"; readonly reason: string }

/** Runs the case that the mutant names against the mutant. Dies unless exactly one case has that name. */
export const run = (mutant: Mutant, options: Suite.Options): Effect.Effect<Verdict> => {
  const { cases = allCases } = options
  const one = cases.filter(({ name }) => name === mutant.kills)
  if (one.length !== 1) return Effect.die(new Error(`mutant ${mutant.name}: no case is named "${mutant.kills}"`))
  return Effect.map(
    Suite.run({ ...options, cases: one, layer: apply(mutant, options.layer) }),
    ({ lines }): Verdict => {
      const { outcome } = lines[0]!
      if (outcome._tag === "NotMeasurable") return outcome
      return outcome._tag === "Failed" ? { _tag: "Killed", error: outcome.error } : { _tag: "Survived", outcome }
    }
  )
}

/**
 * Runs a mutant up to `times` times until its case finds it. Use it for a mutant that is early by a few milliseconds: a busy
 * machine sometimes delivers it late.
 */
export const runUntilKilled = (mutant: Mutant, options: Suite.Options, times = 10): Effect.Effect<Verdict> =>
  Effect.flatMap(run(mutant, options), (verdict) =>
    verdict._tag === "Killed" || times === 1 ? Effect.succeed(verdict) : runUntilKilled(mutant, options, times - 1)
  )

/**
 * The time limit of a case on a patched adapter: `times` times its duration on the sound adapter, plus `millis`
 * milliseconds.
 */
const limit = { millis: 2000, times: 3 } as const

/**
 * Runs the case that the patch names in real time, on the sound adapter first, then on the patched one. On the patched
 * adapter the case also fails if it takes more than three times as long plus two seconds. So mutants that would wait
 * forever are found.
 *
 * Dies if the case fails on the sound adapter, or does not apply to it.
 */
export const runPatched = (
  patch: Patch,
  {
    broken,
    sound,
    ...options
  }: Omit<Suite.Options, "layer" | "timeout" | "virtualTime"> & {
    /** The unchanged adapter. */
    readonly sound: Suite.Options["layer"]
    /** The patched adapter. */
    readonly broken: Suite.Options["layer"]
  }
): Effect.Effect<Verdict> =>
  Effect.gen(function* () {
    const [taken, verdict] = yield* Effect.timed(run(patch, { ...options, layer: sound }))
    if (verdict._tag === "NotMeasurable") return verdict
    if (verdict._tag === "Killed" || verdict.outcome._tag !== "Passed") {
      const how = verdict._tag === "Killed" ? String(verdict.error) : verdict.outcome._tag
      return yield* Effect.die(new Error(`"${patch.kills}" does not pass on the sound adapter: ${how}`))
    }
    const timeout = limit.millis + limit.times * Duration.toMillis(taken)
    return yield* run(patch, { ...options, layer: broken, timeout })
  }).pipe(Effect.provideService(References.MinimumLogLevel, options.logs === true ? "All" : "None"))

/**
 * Reports a verdict to a test runner. Throws for a mutant that survived, because its case did not find it. Skips the test
 * if the machine was too late for a verdict, as the suite does with a case.
 */
export const report = (context: Measured.TestContext, verdict: Verdict): void => {
  if (verdict._tag === "NotMeasurable") return Measured.skip(context, verdict.reason)
  if (verdict._tag === "Survived") throw new Error(`the mutant survived: ${JSON.stringify(verdict.outcome)}`)
}

/** Returns the names of all cases that fail on the mutant. Use it to find the best case for a new mutant. */
export const killers = (mutant: Mutant, options: Suite.Options): Effect.Effect<ReadonlyArray<Case.Case["name"]>> =>
  Effect.map(Suite.run({ ...options, layer: apply(mutant, options.layer) }), ({ lines }) =>
    lines.filter(({ outcome }) => outcome._tag === "Failed").map(({ name }) => name)
  )
