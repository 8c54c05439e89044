/** The former prefix for which people ask: what is under it is removed, so that it must be one that nobody uses. */
import { ConfigurationError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Cleaning } from "./cleaning.ts"

const refusal = (
  prefix: string | undefined,
  settings: Pick<Settings, "prefix">
): ConfigurationError.ConfigurationError | undefined => {
  const refuse = (detail: string, remedy: string) =>
    new ConfigurationError.ConfigurationError({ field: "prefix", broker: "rabbitmq", detail, remedy })
  if (prefix === "") return refuse("the former prefix is empty", "Name the one that programs had, or leave it out")
  return prefix !== settings.prefix
    ? undefined
    : refuse(
        `${prefix} is the prefix of this configuration, and no former one`,
        "Leave it out: what the configuration no longer wants under its own prefix is found without it"
      )
}

/** Refuses a former prefix that cannot be one, before anything is listed or removed. */
export const checked = ({ clean, stale }: Cleaning, settings: Pick<Settings, "prefix">): Cleaning => ({
  stale: (requests, scope) => Effect.suspend(() => refusal(scope?.prefix, settings) ?? stale(requests, scope)),
  clean: (requests, scope, signal) =>
    Effect.suspend(() => refusal(scope?.prefix, settings) ?? clean(requests, scope, signal))
})
