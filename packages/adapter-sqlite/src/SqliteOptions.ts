/**
 * The options of a SQLite broker: from code, from a config object, or from a URL.
 *
 * They are decoded and checked before the file is opened.
 */
import { BrokerUrl, ConfigurationError, Delay, OptionKind } from "@requeue/core/port"
import { AdapterOptions } from "@requeue/kit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

/**
 * The crashes that an accepted send survives:
 *
 * - `full`: a crash of the process, and a power cut. A send waits for the disk; the event loop does not.
 * - `normal`: a crash of the process. A power cut may lose the sends of the last second.
 * - `off`: a crash of the process. A power cut may damage the file.
 */
export type Durability = "full" | "normal" | "off"

const fields = {
  durability: OptionKind.oneOf(["full", "normal", "off"]),
  lease: Delay.kind(1000, 43_200_000),
  timeout: Delay.kind(100, 120_000)
}

const decodeFields = AdapterOptions.decoder("sqlite", fields)

/** The options of a SQLite broker. Each can be in the URL's query as well, which it overrides. */
export interface Options {
  /** The file, such as `sqlite:./queue.db`. Default: `sqlite::memory:`, without a file. */
  readonly url?: string | URL | Redacted.Redacted | undefined
  /** Whether a send waits for the disk. Default: `"full"`. */
  readonly durability?: Durability | undefined
  /** Milliseconds until the message of a killed process is redelivered. Default: 30000. */
  readonly lease?: Delay.DurationInput | undefined
  /** Milliseconds that an operation waits for the disk or a lock. Default: 10000. */
  readonly timeout?: Delay.DurationInput | undefined
}

/** Decoded options, with every default filled in. */
export interface Settings {
  /** The path of the file, or `:memory:`. */
  readonly path: string
  readonly durability: Durability
  /** Milliseconds. */
  readonly lease: number
  /** Milliseconds. */
  readonly timeout: number
}

/** The path of a database without a file. */
export const memory = ":memory:"

const example = "Write, for example, sqlite:./queue.db or sqlite:/data/queue.db?durability=normal"

const refuse = (detail: string, remedy = example): Result.Result<never, ConfigurationError.ConfigurationError> =>
  Result.fail(new ConfigurationError.ConfigurationError({ field: "url", detail, remedy, broker: "sqlite" }))

/** Decodes options. Those of the object override those of the URL's query. */
export const decode = (options: Options = {}): Result.Result<Settings, ConfigurationError.ConfigurationError> => {
  const { url: given = `sqlite:${memory}`, ...own } = options
  const parsed = BrokerUrl.parse(given, Object.keys(fields))
  if (Result.isFailure(parsed)) return refuse(parsed.failure.detail, parsed.failure.remedy)
  const { parameters, url } = parsed.success
  if (url.protocol !== "sqlite:") return refuse(`the scheme ${url.protocol} is not sqlite:`)
  if (url.host !== "") return refuse("the URL has a host, and a file has none")
  const path = decodeURIComponent(url.pathname)
  if (path === "" || path.endsWith("/")) return refuse("the URL names no file")
  if (path.includes("\0")) return refuse("the path of the file has a NUL character, which no file name can have")
  return Result.map(decodeFields(parameters, own), ({ durability = "full", lease = 30_000, timeout = 10_000 }) => ({
    path,
    durability,
    lease,
    timeout
  }))
}
