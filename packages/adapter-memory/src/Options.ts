/** The options of a memory broker, from code or from a URL. */
import { type Adapter, BrokerUrl, ConfigurationError, OptionKind, OptionNames } from "@requeue/core/adapter-kit"
import * as Result from "effect/Result"
import type { Vices } from "./Vices.ts"

/** The options. All are optional. */
export interface Options {
  /**
   * The most messages in one queue, whether ready, delayed or in flight: a whole number of at least 1, or `Infinity`. A
   * publish waits for room. Dead letters, retries and releases never wait, since they are in the broker already.
   * Default: no limit.
   */
  readonly maxMessages?: number | undefined
  /** Bytes of the largest body: a whole number of at least 1, or `Infinity`. Default: no limit. */
  readonly maxBodySize?: number | undefined
  /** Imitated defects of real brokers, for tests. Default: none. */
  readonly vices?: Vices | undefined
}

const limits = ["maxMessages", "maxBodySize"] as const

/** Limits are whole numbers of at least 1, or `Infinity`. */
const isLimit = (value: number): boolean =>
  value === Number.POSITIVE_INFINITY || (Number.isSafeInteger(value) && value >= 1)

const limit: OptionKind.OptionKind = {
  expected: "a whole number >= 1 or Infinity",
  holds: (value) => typeof value === "number" && isLimit(value)
}

/** All options and their kinds, by which wrong ones are found. */
export const kinds: OptionNames.Of<Options> = {
  maxMessages: limit,
  maxBodySize: limit,
  vices: OptionKind.object("an object of imitated defects")
}

const example = "Write memory: or, for example, memory:?maxMessages=1000&maxBodySize=1048576"

const refusal = (field: string, detail: string, remedy = example): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ field, detail, remedy, broker: "memory" })

type Limits = { -readonly [K in (typeof limits)[number]]?: number }

const fromQuery = (parameters: BrokerUrl.BrokerUrl["parameters"]): Limits | ConfigurationError.ConfigurationError => {
  const options: Limits = {}
  for (const name of limits) {
    const text = parameters[name]
    if (text === undefined) continue
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (!isLimit(value)) return refusal(name, "must be a whole number >= 1")
    options[name] = value
  }
  return options
}

/**
 * Reads the options from a URL's query, as in `memory:?maxMessages=1000`, and from a config object, whose options win.
 * Answers a `ConfigurationError` that names the first wrong one.
 */
export const fromUrl = (url: URL, own: Adapter.Options = {}): Options | ConfigurationError.ConfigurationError => {
  if (url.host !== "" || !["", "/"].includes(url.pathname)) {
    return refusal("url", "a memory: URL has no host and no path")
  }
  const parsed = BrokerUrl.parse(url, limits)
  if (Result.isFailure(parsed)) return refusal("url", parsed.failure.detail, parsed.failure.remedy)
  const options = fromQuery(parsed.success.parameters)
  if (options instanceof ConfigurationError.ConfigurationError) return options
  for (const [option, value] of Object.entries(own)) {
    const name = limits.find((known) => known === option)
    if (name === undefined) return refusal(option, "unknown option", OptionNames.remedy(option, limits))
    if (typeof value !== "number" || !isLimit(value)) {
      return refusal(name, `must be a whole number >= 1, got ${JSON.stringify(value)}`)
    }
    options[name] = value
  }
  return options
}
