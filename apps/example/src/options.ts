/** The command line. An error in it is reported in one sentence, before anything is started. */
import { parseArgs } from "node:util"
import { Delay } from "@requeue/core"
import { BrokerUrl } from "@requeue/core/port"
import * as Result from "effect/Result"
import { available, find, type BrokerName } from "./brokers.ts"

export interface Options {
  readonly broker: BrokerName
  /** The address of the broker; `undefined` if one is started. */
  readonly url: string | undefined
  readonly count: number
  readonly seed: number
  /** Milliseconds that handlers may run after a signal. */
  readonly drain: number
  readonly json: boolean
  /** Whether the messages are sent in transactions of a database, whose outbox publishes them. */
  readonly outbox: boolean
  /** Whether the dead letters wait for an operator's redrive, as in the console, instead of being redriven at once. */
  readonly wait: boolean
}

/** A mistake of the user. The program ends with exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError"
}

export const help = `Sends GitHub's example webhooks to subscribers that misbehave, retries, and balances the books.

Usage: npm run demo -- [options]

  --broker <name>     the broker; there is: ${available.join(", ")} (default memory)
  --url <url>         its address (default: memory: for memory; the file dispatcher.db for sqlite, on which a
                      killed run continues; any other broker is started on 127.0.0.1 for this run, and stopped
                      at its end)
  --count <n>         messages to publish, 1 to 100000 (default 1000)
  --seed <n>          0 to 4294967295; the same seed gives the same messages and misbehaviour (default 1)
  --drain <duration>  how long handlers may run after SIGTERM or Ctrl-C, up to 1h: 500ms, 10s, "2 minutes"
                      (default 15s: longer than the 10 seconds that a handler may take)
  --json              one JSON object as the last line of stdout; progress goes to stderr
  --outbox            accepts each webhook in a transaction of an SQLite database, whose outbox publishes it; for
                      memory, rabbitmq, nsq and sqs
  --wait              leaves the dead letters to you, with the subscribers well again: it writes a config file, says
                      how to open the console on it, and goes on until Ctrl-C. Not for memory, which no other process
                      sees
  --help              this text

The first SIGTERM or Ctrl-C drains and reports; the second stops at once. NO_COLOR is respected.

Exit codes
  0    the books balance and no retry came early, also after a drain
  1    the books do not balance, a retry came early, nothing moved for a minute, or the broker failed
  2    a wrong option
  130  stopped at once by a second Ctrl-C; 143 by a second SIGTERM
`

const definitions = {
  broker: { type: "string" },
  url: { type: "string" },
  count: { type: "string", default: "1000" },
  seed: { type: "string", default: "1" },
  drain: { type: "string", default: "15s" },
  json: { type: "boolean", default: false },
  outbox: { type: "boolean", default: false },
  wait: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false }
} as const

/**
 * Reads the arguments.
 *
 * @throws UsageError
 */
export const parse = (args: ReadonlyArray<string>): Options | "help" => {
  const values = readArgs(args)
  if (values.help) return "help"
  const { broker, url } = readBroker(values.broker, values.url)
  if (values.wait && broker === "memory") {
    throw new UsageError(
      "--wait: no other process sees the memory broker; use --broker sqlite, postgres, rabbitmq, nsq or sqs"
    )
  }
  if (values.outbox && (broker === "sqlite" || broker === "postgres")) {
    throw new UsageError(`--outbox: the queues of ${broker} are in a database already`)
  }
  return {
    broker,
    url,
    count: wholeNumber("--count", values.count, 1, 100_000),
    seed: wholeNumber("--seed", values.seed, 0, 2 ** 32 - 1),
    drain: duration("--drain", values.drain),
    json: values.json,
    outbox: values.outbox,
    wait: values.wait
  }
}

const readArgs = (args: ReadonlyArray<string>) => {
  try {
    return parseArgs({ args: [...args], options: definitions, strict: true }).values
  } catch (error) {
    // Node's first sentence describes the mistake; the others are advice about positional arguments.
    const [mistake] = (error instanceof Error ? error.message : String(error)).split(". ")
    throw new UsageError(`${mistake}. Try --help`)
  }
}

const readBroker = (given: string | undefined, url: string | undefined): Pick<Options, "broker" | "url"> => {
  const scheme = url === undefined ? undefined : schemeOf(url)
  const found = given === undefined && scheme !== undefined ? find("scheme", scheme) : find("name", given ?? "memory")
  if (typeof found === "string") throw new UsageError(`${given === undefined ? "--url" : "--broker"}: ${found}`)
  if (scheme !== undefined && !found.schemes.includes(scheme)) {
    throw new UsageError(
      `--url: ${found.name} is reached by ${found.schemes.join(": or ")}: URLs, not by ${scheme}: ones`
    )
  }
  return { broker: found.name, url: url ?? found.url }
}

const schemeOf = (url: string): string => {
  const parsed = BrokerUrl.parse(url)
  // The text is not shown, because a broker's URL may contain a password.
  if (Result.isFailure(parsed)) throw new UsageError(`--url: ${parsed.failure.detail}`)
  return parsed.success.url.protocol.slice(0, -1)
}

const wholeNumber = (option: string, text: string, min: number, max: number): number => {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw new UsageError(`${option}: must be a whole number from ${min} to ${max}, got "${text}"`)
}

const duration = (option: string, text: string): number => {
  const millis = Delay.ofText(text)
  if (millis >= 0 && millis <= 3_600_000) return Math.ceil(millis)
  throw new UsageError(`${option}: must be a duration up to 1h such as 500ms, 10s or "2 minutes", got "${text}"`)
}
