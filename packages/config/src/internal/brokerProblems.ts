/** Turns refusals of brokers into problems with their path in the file and without secrets. */
import { BrokerError, type ConfigurationError } from "@requeue/core"
import { type Capabilities, ConsumerOptions, Feasibility } from "@requeue/core/port"
import { ConfigFileError } from "../ConfigFileError.ts"
import type { ConfiguredQueue } from "../ConfiguredQueue.ts"
import * as ConnectOptions from "./connectOptions.ts"
import * as Masking from "./masking.ts"
import type * as StrictSchema from "../StrictSchema.ts"

/** Makes the functions for errors of a file's brokers. `secretsOf` returns the secrets of a broker and of the queues. */
export const make = (
  file: string,
  queues: Readonly<Record<string, ConfiguredQueue>>,
  secretsOf: (broker: string) => ReadonlyMap<string, string>
) => {
  const refused = (broker: string, problems: ReadonlyArray<StrictSchema.Problem>): ConfigFileError => {
    const secrets = secretsOf(broker)
    return new ConfigFileError({ file, problems: problems.map((each) => Masking.maskProblem(each, secrets)) })
  }

  const locate = (
    broker: string,
    { detail, field, queue, remedy }: ConfigurationError.ConfigurationError
  ): ConfigFileError => {
    const asking = Object.entries(queues).find(([, { name }]) => name === queue)
    const problem =
      asking !== undefined && isOfQueue(field)
        ? { path: placeOf(...asking, field), detail: `on broker ${broker}, for queue ${asking[0]}: ${detail}`, remedy }
        : { path: ["brokers", broker, ...keysOf(field)], detail, remedy }
    return refused(broker, [ConnectOptions.explain(problem)])
  }

  /** Masks the secrets in a broker's error. Its cause cannot be masked, so it is removed. */
  const masked = (name: string, error: BrokerError.BrokerError): BrokerError.BrokerError => {
    const secrets = secretsOf(name)
    if (secrets.size === 0) return error
    const { broker, detail, isMisconfigured, operation, queue, reason, remedy } = error
    return new BrokerError.BrokerError({
      broker,
      operation,
      queue,
      reason,
      isMisconfigured,
      detail: Masking.mask(detail, secrets),
      remedy: remedy === undefined ? undefined : Masking.mask(remedy, secrets)
    })
  }

  return { locate, masked, refused }
}

/** Whether a field belongs to a queue, and not to its broker. */
const isOfQueue = (field: string): boolean => /^(queue|retry)(\.|$)/.test(field)

/** Returns the keys in the name of an option, such as `tls.caFile` or `bindings[1].exchange`. */
const keysOf = (field: string): StrictSchema.Problem["path"] =>
  [...field.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map(([key, index]) => (index === undefined ? key : Number(index)))

/** Returns the path of a queue's field in the file. */
const placeOf = (key: string, { retryPath }: ConfiguredQueue, field: string): StrictSchema.Problem["path"] => {
  const [first = "", ...rest] = keysOf(field)
  if (first === "retry") return [...retryPath, ...rest]
  return ["queues", key, first === "queue" ? "name" : first, ...rest]
}

/** Returns the requirements of a queue that the broker cannot meet, as problems with their paths in the file. */
export const impossible = (
  broker: string,
  key: string,
  queue: ConfiguredQueue,
  capabilities: Capabilities.Capabilities
): ReadonlyArray<StrictSchema.Problem> =>
  Feasibility.check(ConsumerOptions.resolve(queue.options, capabilities.lease), capabilities, queue.name).flatMap(
    ({ support, field }) => {
      if (support._tag !== "Impossible") return []
      const detail = `on broker ${broker}, for queue ${key}: ${support.why}`
      return [{ path: placeOf(key, queue, field), detail, remedy: support.remedy }]
    }
  )
