/** The command line: all commands under one root, their errors and exit codes. */
import { ConfigFileError } from "@requeue/config"
import { BrokerError, Failure } from "@requeue/core"
import { Log } from "@requeue/core/port"
import { DeadLetters } from "@requeue/operations"
import * as CliConfig from "effect/cli/CliConfig"
import * as CliError from "effect/cli/CliError"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { identity } from "effect/Function"
import * as References from "effect/References"
import { createRequire } from "node:module"
import * as Arguments from "./Arguments.ts"
import { check } from "./commands/check.ts"
import { clean } from "./commands/clean.ts"
import { console } from "./commands/console.ts"
import { completion } from "./commands/completion.ts"
import { create } from "./commands/create.ts"
import { deadLetters } from "./commands/deadLetters/index.ts"
import { delayed } from "./commands/delayed/index.ts"
import { explain as explanation } from "./commands/explain.ts"
import { pause, resume } from "./commands/pause.ts"
import { plan } from "./commands/plan.ts"
import { relay } from "./commands/relay.ts"
import { send } from "./commands/send.ts"
import { simulate } from "./commands/simulate.ts"
import { status } from "./commands/status.ts"
import { tail } from "./commands/tail.ts"
import { verify } from "./commands/verify.ts"
import * as ExitCode from "./ExitCode.ts"
import * as Interruption from "./Interruption.ts"
import * as Output from "./Output.ts"
import { OutputFailed } from "./OutputFailed.ts"
import * as Printable from "./Printable.ts"
import { Problem } from "./Problem.ts"
import { Process } from "./Process.ts"
import * as RedriveView from "./RedriveView.ts"
import * as Secrets from "./Secrets.ts"

const { version }: { readonly version: string } = createRequire(import.meta.url)("@requeue/cli/package.json")

const Json = GlobalFlag.Setting("json")({
  flag: Flag.Boolean("json").pipe(
    Flag.withDescription("Print the result as JSON, and errors as one line of JSON"),
    Flag.withDefault(false)
  )
})

const LogFormat = GlobalFlag.Setting("log-format")({
  flag: Flag.Literals("log-format", ["text", "json"]).pipe(
    Flag.withDescription(
      "Write lines of the log, on standard error, as text or as one JSON object each; default: text"
    ),
    Flag.withDefault("text")
  )
})

/**
 * Whether log lines are JSON. This is decided before the arguments are parsed, because log lines may precede an error in
 * the arguments.
 */
const logsJson = (args: ReadonlyArray<string>): boolean =>
  args.some((word, index) => word === "--log-format=json" || (word === "json" && args[index - 1] === "--log-format"))

const exitCodes = ExitCode.table.map(([code, meaning]) => `  ${String(code).padEnd(3)}  ${meaning}`).join("\n")

const whole = (): Command.Command.Any => root

const root = Command.make("requeue").pipe(
  Command.withDescription(`Plans, checks and operates queues on any broker.\n\nEXIT CODES\n${exitCodes}`),
  Command.withSubcommands([
    plan,
    verify,
    create,
    clean,
    check,
    explanation,
    simulate,
    status,
    pause,
    resume,
    delayed,
    deadLetters,
    send,
    tail,
    relay,
    console,
    completion(whole)
  ]),
  Command.withGlobalFlags([Json, LogFormat])
)

/** Shows the help only on request. Mistakes in the arguments are left to `explain`, which prints them in one line. */
const presenter: CliOutput.Presenter = {
  present: (event) => (event._tag === "InvalidInvocation" ? Effect.void : CliOutput.defaultPresenter.present(event))
}

/**
 * Explains an error in one line with its remedy. Returns `undefined` if the error needs no text, or if the command has
 * printed it.
 */
const explain = (error: unknown): string | undefined => {
  if (error instanceof Problem || (error instanceof OutputFailed && error.isReaderGone)) return undefined
  if (!CliError.isCliError(error)) return Failure.summarize(error).message
  if (error._tag !== "ShowHelp") return error.message
  const [first] = error.errors
  if (first === undefined) return undefined
  const text = first.message.replaceAll(/\s+/g, " ").replace("Expected: must", "It must")
  return `${text}. Try ${error.commandPath.join(" ")} --help`
}

/** Returns further fields of an error in JSON, for scripts. */
const details = (error: unknown) => {
  if (error instanceof ConfigFileError) return { file: error.file, problems: error.problems }
  if (error instanceof DeadLetters.DeadLettersStopped) {
    const { cause, operation, queue, removed, report } = error
    const broker = cause instanceof BrokerError.BrokerError ? cause.broker : undefined
    return {
      reason: cause.reason,
      broker,
      queue,
      operation,
      removed,
      report: report && RedriveView.toJson({ queue, report })
    }
  }
  return error instanceof BrokerError.BrokerError
    ? { reason: error.reason, broker: error.broker, queue: error.queue }
    : {}
}

const errorLine = (message: string, reason: string): string => JSON.stringify({ error: { message, reason } })

/** Runs a program. If it is abandoned, prints that the result is unknown. */
const abandonable =
  (json: boolean) =>
  <A, E, R>(program: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const { stderr } = yield* Process
      const { hasTold } = yield* Output.Output
      const text =
        "ended at once. The result of the work in progress is unknown: check it before you run the command again"
      const line = () => (hasTold() ? JSON.stringify({ note: text }) : errorLine(text, "Interrupted"))
      const lastWords = () => void stderr.write(`${json ? line() : `requeue: ${text}`}\n`)
      return yield* Interruption.withLastWords(lastWords)(program)
    })

/** Runs a command line, and returns its exit code. */
export const run = (args: ReadonlyArray<string>) => {
  const json = args.includes("--json")
  const complain = (error: unknown, text: string) => {
    const said = json
      ? Printable.json({ error: { message: text, ...details(error) } })
      : Printable.text(text).replaceAll(/^/gm, "requeue: ")
    // An adapter, or its driver, may repeat its arguments.
    return Console.error(Secrets.mask(said, args))
  }
  const log = Logger.make((options) => {
    const line = Log.toJson(options)
    return Secrets.mask(json ? `{"log":${line}}` : line, args)
  })
  const interrupted = Effect.flatMap(Output.Output, ({ hasTold }) =>
    json && !hasTold() ? Console.error(errorLine("interrupted", "Interrupted")) : Effect.void
  )

  return Arguments.read(args).pipe(
    Effect.flatMap(Command.runWith(root, { version })),
    Effect.as(ExitCode.ok),
    Effect.catch((error) => {
      const text = explain(error)
      return Effect.as(text === undefined ? Effect.void : complain(error, text), ExitCode.of(error))
    }),
    Effect.catchDefect((defect) => {
      const text = Failure.summarize(defect).message
      return Effect.as(complain(defect, `a defect in requeue: ${text}. Please report it`), ExitCode.defect)
    }),
    Effect.onInterrupt(() => interrupted),
    abandonable(json),
    Effect.provideServiceEffect(Output.Output, Output.make(json)),
    Effect.provide(CliOutput.layerPresenter(presenter)),
    Effect.provide(CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version] })),
    Effect.provideService(References.MinimumLogLevel, "Warn"),
    Effect.provideService(Logger.LogToStderr, true),
    json || logsJson(args)
      ? Effect.provideService(References.CurrentLoggers, new Set([Logger.withConsoleError(log)]))
      : identity
  )
}
