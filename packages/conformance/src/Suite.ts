/**
 * Runs the cases against an adapter: on any test runner with {@link register}, or as an Effect that answers the ledger
 * with {@link run}.
 */
import { Broker } from "@requeue/core"
import * as Console from "effect/Console"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as References from "effect/References"
import * as Semaphore from "effect/Semaphore"
import { cases as allCases } from "./Cases.ts"
import * as Case from "./Case.ts"
import * as Check from "./Check.ts"
import * as Control from "./Control.ts"
import { Harness } from "./Harness.ts"
import * as Ledger from "./Ledger.ts"
import * as Measured from "./Measured.ts"
import * as VirtualTime from "./VirtualTime.ts"

/** The functions of a test runner; those of Vitest and of `node:test` (whose `after` is `afterAll`) fit. */
export interface Runner {
  readonly describe: (name: string, body: () => void) => unknown
  readonly test: (
    name: string,
    options: { readonly timeout: number },
    body: (context: Measured.TestContext) => Promise<void>
  ) => unknown
  readonly afterAll: (body: () => Promise<void>) => unknown
}

export interface Options<E = unknown> {
  /** Heads the ledger. */
  readonly name: string
  /** The adapter and the harness on the same broker. With `virtualTime`, each case gets its own. */
  readonly layer: Layer.Layer<Broker.Broker | Harness, E>
  /** Default: all. */
  readonly cases?: ReadonlyArray<Case.Case> | undefined
  /** Longest time of one case, in milliseconds of the clock that it runs on. Default 5 minutes. */
  readonly timeout?: number | undefined
  /** How often a case is measured at most, when the machine was too late to tell whether the broker was. Default 5. */
  readonly measurements?: number | undefined
  /** For a broker inside the process that takes its time from Effect's Clock. Default false. */
  readonly virtualTime?: boolean | undefined
  /** What the consumers log is shown. Default false. */
  readonly logs?: boolean | undefined
  /** Takes the ledger's text. Default: the console. */
  readonly write?: ((text: string) => void) | undefined
}

const [defaultTimeout, defaultMeasurements] = [300_000, 5]

/** Gives up at once when the time is over, though what is interrupted then may take long to end. */
const within = <A, E, R>(effect: Effect.Effect<A, E, R>, timeout: number, name: string) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkDetach(effect)
    const late = () => Effect.fail(new Check.CheckFailed(`${name}: the case did not end within ${timeout} ms`))
    return yield* Fiber.join(fiber).pipe(
      Effect.timeoutOrElse({ duration: Duration.millis(timeout), orElse: late }),
      Effect.ensuring(Effect.sync(() => fiber.interruptUnsafe()))
    )
  })

/** The case, unless it requires what is not there. */
const judge = ({ name, requires, run: program }: Case.Case, timeout: number) =>
  Effect.gen(function* () {
    const missing = requires?.(yield* Case.facts)
    if (missing !== undefined) return { _tag: "NotApplicable", missing } as const
    yield* within(Effect.scoped(program), timeout, name)
    return { _tag: "Passed" } as const
  })

/** What the consumers log is shown where that is asked for. */
const logging =
  ({ logs = false }: Pick<Options, "logs">) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(effect, References.MinimumLogLevel, logs ? "All" : "None")

type Result = Measured.Measured<Ledger.Outcome, unknown>

const outcomeOf = ({ exit, reason }: Result): Ledger.Outcome => {
  if (reason !== undefined) return { _tag: "NotMeasurable", reason: reason.message }
  return Exit.isSuccess(exit) ? exit.value : { _tag: "Failed", error: Measured.errorOf(exit.cause) }
}

const lineOf = ({ group, name }: Case.Case, result: Result): Ledger.Line => ({
  group,
  name,
  outcome: outcomeOf(result),
  measured: result.times
})

/** What came of a case. Of those that run side by side, one at a time is measured again: that leaves it more of the machine. */
const runner = ({
  layer,
  logs,
  measurements = defaultMeasurements,
  timeout = defaultTimeout,
  virtualTime
}: Options) => {
  const again = Semaphore.withPermits(Semaphore.makeUnsafe(1), 1)
  return (one: Case.Case): Effect.Effect<Result, never, Broker.Broker | Harness> => {
    const judged = logging({ logs })(judge(one, timeout))
    return Measured.run<Ledger.Outcome, unknown, Broker.Broker | Harness>(
      virtualTime === true ? VirtualTime.run(Effect.provide(judged, Layer.fresh(layer))) : judged,
      { most: measurements, again }
    )
  }
}

/** In real time, what lateness is judged against. */
const controls = (options: Options) =>
  Layer.effect(
    Control.Control,
    Effect.gen(function* () {
      const queue = yield* (yield* Harness).uniqueQueue("control")
      return yield* Control.make(yield* Broker.Broker, queue)
    }).pipe(logging(options))
  )

const withControls = (options: Options) => Layer.provideMerge(controls(options), options.layer)

/**
 * Runs the cases one after another and answers the ledger, in which failures stand. Dies when there is no broker, no
 * harness, or no queue for the controls.
 */
export const run = (options: Options): Effect.Effect<Ledger.Ledger> => {
  const { cases = allCases, name } = options
  const runCase = runner(options)
  const lines = Effect.forEach(cases, (one) => Effect.map(runCase(one), (result) => lineOf(one, result)))
  const provided = options.virtualTime === true ? withoutBroker(lines) : Effect.provide(lines, withControls(options))
  return Effect.map(Effect.orDie(provided), (done) => ({ name, lines: done, cases: cases.length }))
}

/** In virtual time every case brings its own broker. */
const withoutBroker = <A, E>(effect: Effect.Effect<A, E, Broker.Broker | Harness>): Effect.Effect<A, E> =>
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
  const { cases = allCases, measurements = defaultMeasurements, name, timeout = defaultTimeout } = options
  const lines: Array<Ledger.Line> = []
  const runtime = options.virtualTime === true ? undefined : ManagedRuntime.make(withControls(options))
  const runCase = runner(options)
  const start = (one: Case.Case): Promise<Result> =>
    runtime === undefined ? Effect.runPromise(withoutBroker(runCase(one))) : runtime.runPromise(runCase(one))

  const register = (one: Case.Case) =>
    test(one.name, { timeout: measurements * (timeout + 10_000) }, async (context) => {
      const result = await start(one)
      const line = lineOf(one, result)
      lines.push(line)
      if (line.outcome._tag === "NotApplicable") context.skip(`not applicable: ${line.outcome.missing}`)
      else Measured.report(context, result)
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
