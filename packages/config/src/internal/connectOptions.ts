/** Options of `connect` in a config file, where they have no effect. */
import type { ConnectOptions } from "@requeue/core/promise"
import type { Problem } from "../StrictSchema.ts"

const names: Readonly<Record<keyof ConnectOptions, true>> = {
  adapters: true,
  inboxRetention: true,
  logger: true,
  logLevel: true,
  maxPending: true,
  publishTimeout: true,
  store: true,
  telemetry: true,
  waitForBroker: true
}

/** Adds the remedy to the problem of an unknown key that is an option of `connect`. */
export const explain = (problem: Problem): Problem => {
  const [key, place, broker] = [problem.path.at(-1), ...problem.path]
  const isTop = problem.path.length === 1
  if (!/^unknown (key|option)$/.test(problem.detail) || !(isTop || place === "brokers")) return problem
  if (typeof key !== "string" || !Object.hasOwn(names, key)) return problem
  if (key === "waitForBroker")
    return {
      path: problem.path,
      detail: "this option belongs in a broker of the config file",
      remedy: "Write brokers: { NAME: { url: …, waitForBroker: … } }"
    }
  return {
    path: problem.path,
    detail: "a config file cannot have this option of connect",
    remedy: `Remove the option, and write connect(${isTop ? "undefined" : JSON.stringify(broker)}, { ${key}: … }) in the program`
  }
}
