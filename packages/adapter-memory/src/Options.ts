/** The options of a memory broker, from code or from a URL. */
import { type Adapter, BrokerUrl, ConfigurationError, OptionKind, type OptionNames } from "@requeue/core/port"
import { AdapterOptions } from "@requeue/kit"
import * as Result from "effect/Result"
import type { Faults } from "./Faults.ts"

/** The options of a memory broker. All are optional. */
export interface Options {
  /**
   * Largest number of messages in one queue, delayed and in flight included. When it is full, sends wait; dead
   * letters, retries, releases and sends in transactions do not. Range: 1 or more, or `Infinity`. Default: no limit.
   */
  readonly maxMessages?: number | undefined
  /** Largest body, in bytes. Range: 1 or more, or `Infinity`. Default: no limit. */
  readonly maxBodySize?: number | undefined
  /** Limits and defects of real brokers to imitate, for tests. Default: none. */
  readonly faults?: Faults | undefined
}

const limits = ["maxMessages", "maxBodySize"] as const

const isLimit = (value: number): boolean =>
  value === Number.POSITIVE_INFINITY || (Number.isSafeInteger(value) && value >= 1)

const limit: OptionKind.OptionKind<number> = {
  expected: "a whole number >= 1 or Infinity",
  holds: (value) => typeof value === "number" && isLimit(value),
  read: OptionKind.whole(1).read
}

/** All options and their kinds. */
export const kinds: OptionNames.Of<Options> = {
  maxMessages: limit,
  maxBodySize: limit,
  faults: OptionKind.object("an object of imitated defects")
}

const example = "Write memory: or, for example, memory:?maxMessages=1000&maxBodySize=1048576"

const refusal = (field: string, detail: string, remedy = example): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ field, detail, remedy, broker: "memory" })

const decodeLimits = AdapterOptions.decoder("memory", { maxMessages: limit, maxBodySize: limit })

/**
 * Reads the options from a URL's query, as in `memory:?maxMessages=1000`, and from a config object, which overrides it.
 * Returns a `ConfigurationError` that names the first wrong option.
 */
export const fromUrl = (url: URL, overrides: Adapter.Options = {}): Options | ConfigurationError.ConfigurationError => {
  if (url.host !== "" || !["", "/"].includes(url.pathname)) {
    return refusal("url", "a memory: URL has no host and no path")
  }
  const parsed = BrokerUrl.parse(url, limits)
  if (Result.isFailure(parsed)) return refusal("url", parsed.failure.detail, parsed.failure.remedy)
  return Result.merge(decodeLimits(parsed.success.parameters, overrides))
}
