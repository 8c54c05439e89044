/** Options of `connect` in a config file: those that a broker can have, and those that have no effect. */
import type { ConnectOptions } from "@requeue/core/promise"
import type { Problem } from "../StrictSchema.ts"

/** The options that a broker can have in a file. */
export const ofBroker = ["waitForBroker", "store", "inboxRetention", "storeNamespace"] as const

const names: Readonly<Record<keyof ConnectOptions, true>> = {
  adapters: true,
  inboxRetention: true,
  logger: true,
  logLevel: true,
  maxPending: true,
  publishTimeout: true,
  store: true,
  storeNamespace: true,
  telemetry: true,
  waitForBroker: true
}

/** Adds the remedy to the problem of an unknown key that is an option of `connect`. */
export const explain = (problem: Problem): Problem => {
  const [key, place, broker] = [problem.path.at(-1), ...problem.path]
  const isTop = problem.path.length === 1
  if (!/^unknown (key|option)$/.test(problem.detail) || !(isTop || place === "brokers")) return problem
  if (typeof key !== "string" || !Object.hasOwn(names, key)) return problem
  const own = ofBroker.find((name) => name === key)
  if (own !== undefined)
    return {
      path: problem.path,
      detail: "this option belongs in a broker of the config file",
      remedy: `Write brokers: { NAME: { url: …, ${own}: … } }`
    }
  return {
    path: problem.path,
    detail: "a config file cannot have this option of connect",
    remedy: `Remove the option, and write connect(${isTop ? "undefined" : JSON.stringify(broker)}, { ${key}: … }) in the program`
  }
}
