/**
 * Runs the cases against an adapter: on any test runner with {@link register}, or as an Effect that answers the ledger
 * with {@link run}.
 */
import type { Broker } from "@requeue/core/Broker"
import * as Cause from "effect/Cause"
import * as Console from "effect/Console"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as References from "effect/References"
import { cases as allCases } from "./Cases.ts"
import * as Case from "./Case.ts"
import * as Check from "./Check.ts"
import type { Harness } from "./Harness.ts"
import * as Ledger from "./Ledger.ts"
import * as VirtualTime from "./VirtualTime.ts"

/** The functions of a test runner; those of Vitest and of `node:test` (whose `after` is `afterAll`) fit. */
export interface Runner {
  readonly describe: (name: string, body: () => void) => unknown
  readonly test: (
    name: string,
    options: { readonly timeout: number },
    body: (context: { readonly skip: (reason?: string) => unknown }) => Promise<void>
  ) => unknown
  readonly afterAll: (body: () => Promise<void>) => unknown
}

export interface Options<E = unknown> {
  /** Heads the ledger. */
  readonly name: string
  /** The adapter and the harness on the same broker. With `virtualTime`, each case gets its own. */
  readonly layer: Layer.Layer<Broker | Harness, E>
  /** Default: all. */
  readonly cases?: ReadonlyArray<Case.Case> | undefined
  /** Longest time of one case, in milliseconds of the clock that it runs on. Default 60 seconds. */
  readonly timeout?: number | undefined
  /** For a broker inside the process that takes its time from Effect's Clock. Default false. */
  readonly virtualTime?: boolean | undefined
  /** What the consumers log is shown. Default false. */
  readonly logs?: boolean | undefined
  /** Takes the ledger's text. Default: the console. */
  readonly write?: ((text: string) => void) | undefined
}

const defaultTimeout = 60_000

/** One case, from the look at what it requires to its end. */
const judge = (
  { name, requires, run: program }: Case.Case,
  timeout: number
): Effect.Effect<Ledger.Outcome, unknown, Broker | Harness> =>
  Effect.gen(function* () {
    const missing = requires?.(yield* Case.facts)
    if (missing !== undefined) return { _tag: "NotApplicable", missing } as const
    const late = () => Effect.fail(new Check.CheckFailed(`${name}: the case did not end within ${timeout} ms`))
    yield* Effect.timeoutOrElse(Effect.scoped(program), { duration: Duration.millis(timeout), orElse: late })
    return { _tag: "Passed" } as const
  })

const outcome = <R>(effect: Effect.Effect<Ledger.Outcome, unknown, R>): Effect.Effect<Ledger.Outcome, never, R> =>
  Effect.map(Effect.exit(effect), (exit) =>
    Exit.isSuccess(exit) ? exit.value : { _tag: "Failed", error: Cause.squash(exit.cause) }
  )

/** Provides a case with what the options say; a real broker comes from the context. */
const runCase = (
  one: Case.Case,
  { layer, logs = false, timeout = defaultTimeout, virtualTime = false }: Options
): Effect.Effect<Ledger.Outcome, never, Broker | Harness> => {
  const judged = Effect.provideService(judge(one, timeout), References.MinimumLogLevel, logs ? "All" : "None")
  return outcome(virtualTime ? VirtualTime.run(Effect.provide(judged, Layer.fresh(layer))) : judged)
}

/** Runs the cases one after another and answers the ledger. Never fails: failures stand in the ledger. */
export const run = (options: Options): Effect.Effect<Ledger.Ledger> => {
  const { cases = allCases, name } = options
  const lines = Effect.forEach(cases, (one) =>
    Effect.map(runCase(one, options), (result): Ledger.Line => ({ group: one.group, name: one.name, outcome: result }))
  )
  const provided = options.virtualTime === true ? withoutBroker(lines) : Effect.provide(lines, options.layer)
  return Effect.map(Effect.orDie(provided), (done) => ({ name, lines: done, cases: cases.length }))
}

/** In virtual time every case brings its own broker. */
const withoutBroker = <A, E>(effect: Effect.Effect<A, E, Broker | Harness>): Effect.Effect<A, E> =>
  effect as Effect.Effect<A, E>

/**
 * Registers every case as a test, by group, and prints the ledger at the end.
 *
 * A case that does not apply is skipped by the runner, with the missing capability as the reason; nothing else is.
 *
 * @example
 * ```ts no-run
 * import { type Harness, Suite } from "@requeue/conformance"
 * import type { Broker } from "@requeue/core"
 * import type { Layer } from "effect"
 * import { afterAll, describe, test } from "vitest"
 *
 * declare const layer: Layer.Layer<Broker.Broker | Harness.Harness>
 *
 * Suite.register({ describe, test, afterAll }, { name: "memory", layer, virtualTime: true })
 * ```
 */
export const register = ({ afterAll, describe, test }: Runner, options: Options): void => {
  const { cases = allCases, name, timeout = defaultTimeout } = options
  const lines: Array<Ledger.Line> = []
  const runtime = options.virtualTime === true ? undefined : ManagedRuntime.make(options.layer)
  const start = (one: Case.Case): Promise<Ledger.Outcome> => {
    const effect = runCase(one, options)
    return runtime === undefined ? Effect.runPromise(withoutBroker(effect)) : runtime.runPromise(effect)
  }

  const register = (one: Case.Case) =>
    test(one.name, { timeout: timeout + 10_000 }, async (context) => {
      const result = await start(one)
      lines.push({ group: one.group, name: one.name, outcome: result })
      if (result._tag === "Failed") throw result.error
      if (result._tag === "NotApplicable") context.skip(`not applicable: ${result.missing}`)
    })

  describe(`conformance of ${name}`, () => {
    for (const group of new Set(cases.map((one) => one.group))) {
      describe(group, () => cases.filter((one) => one.group === group).forEach(register))
    }
    afterAll(async () => {
      const text = Ledger.render({ name, lines, cases: cases.length })
      if (options.write === undefined) Effect.runSync(Console.log(text))
      else options.write(text)
      await runtime?.dispose()
    })
  })
}
