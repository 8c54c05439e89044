/** Options of `connect` that somebody has written into a file. */
import type { ConnectOptions } from "@requeue/core/promise"
import type { Problem } from "../StrictSchema.ts"

const names: Readonly<Record<keyof ConnectOptions, true>> = {
  adapters: true,
  logger: true,
  logLevel: true,
  maxPending: true,
  publishTimeout: true,
  telemetry: true,
  waitForBroker: true
}

/** The problem of a key that is not known: where it is an option of `connect`, the remedy says so. */
export const explain = (problem: Problem): Problem => {
  const [key, place, broker] = [problem.path.at(-1), ...problem.path]
  const isTop = problem.path.length === 1
  if (!/^unknown (key|option)$/.test(problem.detail) || !(isTop || place === "brokers")) return problem
  if (typeof key !== "string" || !Object.hasOwn(names, key)) return problem
  if (key === "waitForBroker")
    return {
      path: problem.path,
      detail: "this option of connect stands in a broker of a config file",
      remedy: "Write brokers: { NAME: { url: …, waitForBroker: … } }"
    }
  return {
    path: problem.path,
    detail: "this option of connect cannot stand in a config file",
    remedy: `Remove it, and write connect(${isTop ? "undefined" : JSON.stringify(broker)}, { ${key}: … }) in the program`
  }
}
