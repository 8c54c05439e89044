/** Reads a retry policy from the command line: its name in the config file, a preset's name, or JSON. */
import { PolicyConfig } from "@requeue/config"
import type { RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Flag from "effect/cli/Flag"
import * as Schema from "effect/Schema"
import * as TextFlag from "./TextFlag.ts"
import { UsageError } from "./UsageError.ts"

const presets = ["cloudflareQueues", "nsqRequeue", "webhookSender", "rabbitMqGrowing"]

export const flag = TextFlag.make("policy").pipe(
  Flag.withMetavar("POLICY"),
  Flag.withDescription(
    `A retry policy: a name in the config file, a preset (${presets.join(", ")}), or JSON such as ` +
      `'{"maxRetries":5,"backoff":{"type":"exponential","base":"1 second"}}'`
  ),
  Flag.optional
)

/** Whether a text is a policy or the name of a preset, so it needs no config file. */
export const isSelfContained = (text: string): boolean => presets.includes(text) || text.startsWith("{")

const decodeJson = Schema.decodeUnknownEffect(Schema.fromJsonString(PolicyConfig.RetryPolicy))

/** Returns the policy that a text is, or that the text names. `named` has the policies of the config file. */
export const decode = (
  text: string,
  named: Readonly<Record<string, RetryPolicy.RetryPolicy>>
): Effect.Effect<RetryPolicy.RetryPolicy, UsageError> => {
  const found = Object.hasOwn(named, text) ? named[text] : undefined
  if (found !== undefined) return Effect.succeed(found)
  const json = presets.includes(text) ? JSON.stringify({ preset: text }) : text
  if (!json.startsWith("{")) {
    const known = [...Object.keys(named), ...presets].join(", ")
    return Effect.fail(
      new UsageError({
        detail: `--policy: there is no policy named ${text}`,
        remedy: `Policies: ${known}; or give JSON`
      })
    )
  }
  return Effect.mapError(
    decodeJson(json),
    (error) =>
      new UsageError({
        detail: `--policy: ${error.message.replaceAll(/\s+/g, " ")}`,
        remedy: `Write, for example, '{"maxRetries":5,"backoff":{"type":"constant","delay":"10 seconds"}}'`
      })
  )
}
