/** `requeue console`: serves the console, until it is interrupted. */
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { Authorization, BrokerSource } from "@requeue/console"
import { Failure } from "@requeue/core"
import { resolve } from "node:path"
import * as Audit from "../Audit.ts"
import * as NumberFlag from "../NumberFlag.ts"
import { Output } from "../Output.ts"
import { Process } from "../Process.ts"
import * as Target from "../Target.ts"
import * as TextFlag from "../TextFlag.ts"
import { UsageError } from "../UsageError.ts"

const roles: ReadonlyArray<Authorization.Action> = ["view", "bodies", "redrive", "purge"]

/**
 * The environment variable with the password. An argument would not do, because every user of the machine can read it.
 */
const variable = "REQUEUE_CONSOLE_PASSWORD"

const flags = {
  ...Target.flags,
  host: Flag.String("host").pipe(
    Flag.withMetavar("ADDRESS"),
    Flag.withDescription(`The address to listen on. Other addresses than 127.0.0.1 require ${variable}`),
    Flag.withDefault("127.0.0.1")
  ),
  port: NumberFlag.whole("port", 0, 65_535).pipe(
    Flag.withDescription("The port to listen on; 0 for any that is free"),
    Flag.withDefault(4747)
  ),
  name: Flag.String("name").pipe(
    Flag.withMetavar("HOST"),
    Flag.withDescription("A host name of the console, such as ops.example.com; can be repeated"),
    Flag.atLeast(0)
  ),
  proxy: Flag.String("proxy").pipe(
    Flag.withMetavar("ADDRESS"),
    Flag.withDescription("A proxy that reports the client's address, such as 10.0.0.7 or 10.0.0.0/8; can be repeated"),
    Flag.atLeast(0)
  ),
  role: Flag.Literals("role", roles).pipe(
    Flag.withDescription("What operators may do; each role includes those before it. Default: redrive"),
    Flag.withDefault("redrive" as const)
  ),
  audit: Flag.String("audit").pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription("Append the lines of the audit to this file; - for standard error. Default: -"),
    Flag.withDefault("-")
  ),
  traceUrl: TextFlag.make("trace-url").pipe(
    Flag.withMetavar("URL"),
    Flag.withDescription(
      "The address of a trace, such as https://traces.example.com/trace/{traceId}: letters with traceparent link to it"
    ),
    Flag.optional
  ),
  operator: Audit.flags.operator
}

type Loaded = typeof import("@requeue/console")

/** Returns the brokers that the flags name. Default: all brokers of the config file that have queues. */
const brokersOf = (
  { BrokerSource: { ofConfiguration, operationsOf, queueOf, secretsOfAddress } }: Loaded,
  { broker, queue, ...rest }: Target.Flags
) =>
  Effect.gen(function* () {
    const config = yield* Target.configuration({ ...rest, broker, queue })
    if (config === undefined || queue.length > 0) {
      const target = yield* Target.resolve({ ...rest, broker, queue })
      const source: BrokerSource.BrokerSource = {
        name: target.name,
        queues: target.queues.map(queueOf),
        layer: Layer.provide(Target.layer(target), Layer.succeed(Output, yield* Output)),
        secrets: secretsOfAddress(target.resolved.address),
        operations: operationsOf(Effect.succeed(target.resolved))
      }
      return [source]
    }
    const all = yield* ofConfiguration(config)
    const chosen = Option.isNone(broker) ? all : all.filter(({ name }) => name === broker.value)
    if (chosen.length > 0) return chosen
    return yield* new UsageError({
      detail: `${config.file} has no queue on ${Option.getOrElse(broker, () => "any broker")}`,
      remedy: `Give --broker with one of ${all.map(({ name }) => name).join(", ")}`
    })
  })

/** Turns a refusal of the console into an error of arguments. */
const refusing = <A, E, R>(remedy: string, make: () => Effect.Effect<A, E, R>): Effect.Effect<A, E | UsageError, R> =>
  Effect.suspend((): Effect.Effect<A, E | UsageError, R> => {
    try {
      return make()
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      return Effect.fail(new UsageError({ detail: error.message, remedy }))
    }
  })

const refusedAudit = (error: unknown): UsageError =>
  new UsageError({ detail: `--audit: ${Failure.summarize(error).message}`, remedy: "Give a file that can be written" })

export const console = Command.make(
  "console",
  flags,
  ({ audit, host, name, operator, port, proxy, role, traceUrl, ...rest }) =>
    Effect.gen(function* () {
      const { line } = yield* Output
      const { cwd, env, stderr } = yield* Process
      // Other commands do not need it.
      const loaded = yield* Effect.promise(() => import("@requeue/console"))
      const write = audit === "-" ? loaded.Audit.toStream(stderr) : loaded.Audit.toFile(resolve(cwd(), audit))
      // Fails now if the file cannot be written, and not when it is needed.
      if (audit !== "-") yield* Effect.tryPromise({ try: async () => write(""), catch: refusedAudit })
      const brokers = yield* brokersOf(loaded, rest)
      const who = Option.getOrElse(operator, Audit.user)
      const { Authorization } = loaded
      const password = env[variable]
      const hosts = name.length > 0 ? name : undefined
      const authorize = yield* refusing(
        `Set ${variable} to at least 12 characters, and --operator to a name without a colon`,
        () => Effect.succeed(password === undefined ? undefined : Authorization.basic([{ name: who, password, role }]))
      )
      const requeue = yield* refusing(`Set ${variable}, or leave out --name and --proxy, or fix --trace-url`, () =>
        loaded.Console.make({
          brokers,
          hosts,
          proxies: proxy,
          traceUrl: Option.getOrUndefined(traceUrl),
          authorize,
          local: { operator: who, role },
          audit: write
        })
      )
      const url = yield* refusing(`Set ${variable} and give --name, or listen on 127.0.0.1`, () =>
        loaded.NodeServer.serve(requeue, { host, port })
      ).pipe(
        Effect.mapError((error) =>
          error instanceof UsageError ? error : new UsageError({ detail: error.message, remedy: "Give another --port" })
        )
      )
      yield* line({ url: url.href }, () => `console on ${url.href}, as ${who}, who may ${role}. Ctrl-C ends it`)
      return yield* Effect.never
    }).pipe(Effect.scoped)
).pipe(
  Command.withDescription(
    "Shows queues and dead letters of all brokers of the config file in a browser, where you can redrive them. It listens on " +
      `this machine only, unless ${variable} has a password of at least 12 characters, which the browser then asks for with ` +
      "the name of --operator. Every operation has a line in the audit when it begins and when it ends."
  ),
  Command.withShortDescription("Queues and dead letters in a browser"),
  Command.withExamples([
    { command: "requeue console", description: "Every queue of the config file" },
    {
      command: "requeue console --role purge --audit audit.jsonl",
      description: "With all rights, and a record of who did what"
    },
    { command: "requeue console --url amqp://localhost --queue orders", description: "Without a config file" }
  ])
)
