/** What a command acts on: a broker, and queues of it. From a config file, or from `--url` and `--queue`. */
import * as Adapters from "@requeue/core/Adapters"
import type { Broker } from "@requeue/core/Broker"
import type { BrokerError } from "@requeue/core/BrokerError"
import type { ConfigurationError } from "@requeue/core/ConfigurationError"
import type * as ConsumerOptions from "@requeue/core/ConsumerOptions"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Flag from "effect/cli/Flag"
import * as Policy from "./Policy.ts"
import { UsageError } from "./UsageError.ts"

/** The flags of every command that acts on a broker. */
export const flags = {
  config: Flag.String("config").pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription(
      "The config file. Default: requeue.config.{ts,js,mjs,json,yaml,yml} here or in a parent folder"
    ),
    Flag.optional
  ),
  broker: Flag.String("broker").pipe(
    Flag.withMetavar("NAME"),
    Flag.withDescription("A broker of the config file. Default: the file's default broker"),
    Flag.optional
  ),
  url: Flag.String("url").pipe(
    Flag.withMetavar("URL"),
    Flag.withDescription("A broker's URL, instead of a config file"),
    Flag.optional
  ),
  queue: Flag.String("queue").pipe(
    Flag.withAlias("q"),
    Flag.withMetavar("NAME"),
    Flag.withDescription("The queue; can be repeated. Default: all queues that the config file has on the broker"),
    Flag.atLeast(0)
  )
}

/** The values of the flags. */
export interface Flags {
  readonly config: Option.Option<string>
  readonly broker: Option.Option<string>
  readonly url: Option.Option<string>
  readonly queue: ReadonlyArray<string>
}

export interface Queue {
  readonly name: string
  /** What its consumers are started with. */
  readonly options: ConsumerOptions.Options
}

export interface Target {
  /** The broker's name in the config file, or its scheme. */
  readonly name: string
  /** At least one. */
  readonly queues: ReadonlyArray<Queue>
  readonly resolved: Adapters.Resolved
}

/** The broker and the queues that the flags ask for. Nothing is connected. */
export const resolve = Effect.fnUntraced(function* (flags: Flags, policy: Option.Option<string> = Option.none()) {
  if (Option.isNone(flags.url)) {
    return yield* new UsageError({ detail: "no broker is given", remedy: "Give --url, for example --url memory:" })
  }
  if (flags.queue.length === 0) {
    return yield* new UsageError({ detail: "no queue is given", remedy: "Give --queue NAME" })
  }
  const resolved = yield* Adapters.find(flags.url.value)
  const retry = Option.isSome(policy) ? yield* Policy.decode(policy.value, {}) : undefined
  const target: Target = {
    name: resolved.scheme,
    queues: flags.queue.map((name) => ({ name, options: { retry } })),
    resolved
  }
  return target
})

/** The broker of a target, connected as long as the command runs. */
export const layer = ({ resolved }: Target): Layer.Layer<Broker, BrokerError | ConfigurationError> =>
  Adapters.layerOf(resolved)
