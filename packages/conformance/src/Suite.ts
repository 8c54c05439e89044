/**
 * Runs the cases against an adapter: on any test runner with {@link register}, or as an Effect that returns the ledger with
 * {@link run}.
 */
import { Broker } from "@requeue/core"
import { OptionKind, OptionNames } from "@requeue/core/port"
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
import * as CheckHarness from "./internal/checkHarness.ts"
import { make as watchHarness, type Watched } from "./internal/watchedHarness.ts"
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

/** An adapter, and how its cases run. */
export interface Options<E = unknown> {
  /** The adapter's name with its version, which is the heading of the report. */
  readonly name: string
  /**
   * The layer of the adapter and the harness, both on the same broker. With `virtualTime`, the layer is built anew for each
   * case.
   */
  readonly layer: Layer.Layer<Broker.Broker | Harness, E>
  /** The cases to run. Default: all. */
  readonly cases?: ReadonlyArray<Case.Case> | undefined
  /** Longest time of one measurement of a case, in milliseconds of the clock that it runs on. Default 5 minutes. */
  readonly timeout?: number | undefined
  /** Maximum number of measurements of a case while the machine is too late for a verdict. Default 5. */
  readonly measurements?: number | undefined
  /** Runs each case in virtual time: for an in-process broker that uses Effect's Clock. Default false. */
  readonly virtualTime?: boolean | undefined
  /**
   * Whether delays that end late fail a case. `ignored` runs no controls and measures once. A case then fails if a message is
   * early, lost or counted wrongly, but not if it is late, for example on a busy machine. Default: `judged`.
   */
  readonly lateness?: "judged" | "ignored" | undefined
  /** Shows the log lines of the consumers and of the layer. Default false. */
  readonly logs?: boolean | undefined
  /** Receives the ledger's text at the end of {@link register}. Default: prints it. */
  readonly write?: ((text: string) => void) | undefined
}

const [defaultTimeout, defaultMeasurements] = [300_000, 5]

const isLayer: OptionKind.OptionKind = { expected: "a Layer", holds: Layer.isLayer }

const known: OptionNames.Of<Options> = {
  name: OptionKind.text,
  layer: isLayer,
  cases: OptionKind.list,
  timeout: OptionKind.number(1),
  measurements: OptionKind.whole(1),
  virtualTime: OptionKind.flag,
  lateness: OptionKind.oneOf(["judged", "ignored"]),
  logs: OptionKind.flag,
  write: OptionKind.callback
}

/** Returns the error of invalid options; `undefined` if they are valid. */
const refusal = (call: string, options: Options): RangeError | undefined =>
  OptionNames.refusal(call, options, known) ??
  OptionNames.argument(call, "name", options.name, OptionKind.text) ??
  OptionNames.argument(call, "layer", options.layer, isLayer)

/** Fails when the time is over, interrupts the effect, and does not wait for its end. */
const within = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  timeout: number,
  name: string,
  underWay: Watched["underWay"]
) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkDetach(effect)
    const late = () => {
      const hooks = underWay().map((hook) => `; ${hook} was running`)
      return Effect.fail(new Check.CheckFailed(`${name}: the case did not end within ${timeout} ms${hooks.join("")}`))
    }
    return yield* Fiber.join(fiber).pipe(
      Effect.timeoutOrElse({ duration: Duration.millis(timeout), orElse: late }),
      Effect.ensuring(Effect.sync(() => fiber.interruptUnsafe()))
    )
  })

/** Runs a case, unless the broker or the harness lacks what it requires. */
const outcomeOf = ({ name, requires, run: program }: Case.Case, timeout: number) =>
  Effect.gen(function* (): Effect.fn.Return<Ledger.Outcome, unknown, Broker.Broker | Harness> {
    const missing = requires?.(yield* Case.abilities)
    if (missing !== undefined) return { _tag: "NotApplicable", missing }
    const { harness, underWay } = watchHarness(yield* Harness, yield* Broker.Broker)
    yield* within(Effect.provideService(Effect.scoped(program), Harness, harness), timeout, name, underWay)
    return { _tag: "Passed" }
  })

const levelOf = ({ logs = false }: Pick<Options, "logs">) => (logs ? "All" : "None")

/** Shows the log lines of the effect, or hides them. */
const logging =
  (options: Pick<Options, "logs">) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(effect, References.MinimumLogLevel, levelOf(options))

type Result = Measured.Measured<Ledger.Outcome, unknown>

const lineOf = ({ group, name }: Case.Case, { exit, reason, times: measured }: Result): Ledger.Line => {
  const line = (outcome: Ledger.Outcome): Ledger.Line => ({ group, name, outcome, measured })
  if (reason !== undefined) return line({ _tag: "NotMeasurable", reason: reason.message })
  return line(Exit.isSuccess(exit) ? exit.value : { _tag: "Failed", error: Measured.errorOf(exit.cause) })
}

/** A measurement of a case on a running broker. */
type Measurement = Effect.Effect<Ledger.Outcome, unknown, Broker.Broker | Harness>

/**
 * Runs single cases; `prepare` changes each measurement. Among concurrent cases, only one at a time is measured again,
 * because it then has more of the machine.
 */
const runner = <R>(
  { logs, measurements = defaultMeasurements, timeout = defaultTimeout }: Options,
  prepare: (measurement: Measurement) => Effect.Effect<Ledger.Outcome, unknown, R>
) => {
  const again = Semaphore.withPermits(Semaphore.makeUnsafe(1), 1)
  return (one: Case.Case): Effect.Effect<Result, never, R> =>
    Measured.run(prepare(logging({ logs })(outcomeOf(one, timeout))), { most: measurements, again })
}

/** Reads the broker and the harness, and refuses a harness of the wrong form. */
const checked = (options: Options) => {
  const check = Effect.flatMap(Harness, (harness) => {
    const problem = CheckHarness.problemOf(harness)
    return problem === undefined ? Effect.void : Effect.die(problem)
  })
  const quiet = Layer.succeed(References.MinimumLogLevel, levelOf(options))
  return Layer.provideMerge(Layer.effectDiscard(check), Layer.provide(options.layer, quiet))
}

/** Runs every case in virtual time, each on a new broker. */
const virtualRunner = (options: Options) =>
  runner(options, (measurement) => VirtualTime.run(Effect.provide(measurement, Layer.fresh(checked(options)))))

/** Runs the cases in real time, on the provided broker. */
const realRunner = (options: Options) => runner(options, (measurement) => measurement)

/** Returns the controls for real time, with which the lateness of a case is compared. */
const controls = (options: Options) =>
  Layer.effect(
    Control.Control,
    Effect.gen(function* () {
      const queue = yield* (yield* Harness).uniqueQueue("control")
      return yield* Control.make(yield* Broker.Broker, queue)
    }).pipe(logging(options))
  )

const withControls = (options: Options) =>
  Layer.provideMerge(
    options.lateness === "ignored" ? Layer.succeed(Control.Control, Control.ignored) : controls(options),
    checked(options)
  )

/**
 * Runs the cases one after another and returns the ledger. A case that fails is a line of the ledger. Dies without a broker, a
 * harness, or a queue for the controls.
 */
export const run = (options: Options): Effect.Effect<Ledger.Ledger> =>
  OptionNames.orDie(refusal("Suite.run", options), () => runChecked(options))

const runChecked = (options: Options): Effect.Effect<Ledger.Ledger> => {
  const { cases = allCases, name } = options
  const linesBy = <R>(runCase: (one: Case.Case) => Effect.Effect<Result, never, R>) =>
    Effect.forEach(cases, (one) => Effect.map(runCase(one), (result) => lineOf(one, result)))
  const lines =
    options.virtualTime === true
      ? linesBy(virtualRunner(options))
      : Effect.provide(linesBy(realRunner(options)), withControls(options))
  return Effect.map(Effect.orDie(lines), (done) => ({ name, lines: done, cases: cases.length }))
}

/** Runs cases as promises, until it is disposed. */
const promiseRunner = (options: Options) => {
  if (options.virtualTime === true) {
    const runCase = virtualRunner(options)
    return { start: (one: Case.Case) => Effect.runPromise(runCase(one)), dispose: async () => {} }
  }
  const runtime = ManagedRuntime.make(withControls(options))
  const runCase = realRunner(options)
  return { start: (one: Case.Case) => runtime.runPromise(runCase(one)), dispose: () => runtime.dispose() }
}

/**
 * Registers every case as a test, by group, and writes the ledger when all have run.
 *
 * A case that does not apply is skipped, with the missing capability as the reason. A case that could not be measured is skipped,
 * too.
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
  for (const [name, value] of Object.entries({ describe, test, afterAll })) {
    OptionNames.orThrow(OptionNames.argument("Suite.register", name, value, OptionKind.callback))
  }
  OptionNames.orThrow(refusal("Suite.register", options))
  const { cases = allCases, name, timeout = defaultTimeout } = options
  const measurements = options.lateness === "ignored" ? 1 : (options.measurements ?? defaultMeasurements)
  const lines: Array<Ledger.Line> = []
  const { dispose, start } = promiseRunner(options)

  const register = (one: Case.Case) =>
    test(one.name, { timeout: measurements * (timeout + 10_000) }, async (context) => {
      const result = await start(one)
      const line = lineOf(one, result)
      lines.push(line)
      if (line.outcome._tag !== "NotApplicable") return Measured.report(context, result)
      Object.assign(context.task?.meta ?? {}, { notApplicable: line.outcome.missing })
      context.skip(`not applicable: ${line.outcome.missing}`)
    })

  describe(`conformance of ${name}`, () => {
    for (const group of new Set(cases.map((one) => one.group))) {
      describe(group, () => cases.filter((one) => one.group === group).forEach(register))
    }
    afterAll(async () => {
      const text = Ledger.render({ name, lines, cases: cases.length })
      if (options.write === undefined) Effect.runSync(Console.log(text))
      else options.write(text)
      await dispose()
    })
  })
}
