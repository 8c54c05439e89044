/**
 * The policies and operator policies of a virtual host, and which of them holds for a queue, whether or not it exists yet. Pure.
 * https://www.rabbitmq.com/docs/policies
 */
import * as Predicate from "effect/Predicate"

/** The definition of a policy, such as `message-ttl`. */
export type Definition = Readonly<Record<string, unknown>>

/** A policy. */
interface Rule {
  readonly pattern: RegExp
  readonly applyTo: string
  readonly priority: number
  readonly definition: Definition
}

/** The policies, those of more priority first. */
export interface Rules {
  readonly user: ReadonlyArray<Rule>
  readonly operator: ReadonlyArray<Rule>
}

/** No policies. */
export const none: Rules = { user: [], operator: [] }

const text = (value: unknown, otherwise = ""): string => (typeof value === "string" ? value : otherwise)

/** The server's patterns are PCRE. One that JavaScript cannot parse is skipped: its effect shows once a queue exists. */
const regExp = (pattern: string): RegExp | undefined => {
  try {
    return new RegExp(pattern)
  } catch {
    return undefined
  }
}

const toRule = (json: unknown): ReadonlyArray<Rule> => {
  if (!Predicate.isReadonlyObject(json)) return []
  const { "apply-to": applyTo, definition, pattern, priority } = json
  const compiled = regExp(text(pattern, "(?!)"))
  const ranked = typeof priority === "number" ? priority : 0
  return compiled === undefined || !Predicate.isReadonlyObject(definition)
    ? []
    : [{ pattern: compiled, applyTo: text(applyTo, "all"), priority: ranked, definition }]
}

const toRules = (json: unknown): ReadonlyArray<Rule> =>
  (Array.isArray(json) ? json.flatMap(toRule) : []).toSorted((one, other) => other.priority - one.priority)

/** Reads the answers of `/api/policies` and `/api/operator-policies`; `undefined` for one that was refused. */
export const make = (policies: unknown, operatorPolicies: unknown): Rules => ({
  user: toRules(policies),
  operator: toRules(operatorPolicies)
})

/** A policy with one of these keys does not apply to queues of the type, on 3.10 and all later servers. */
const unsupported: Readonly<Record<"quorum" | "classic", ReadonlyArray<string>>> = {
  quorum: ["max-priority", "queue-mode", "single-active-consumer", "ha-mode", "ha-params", "ha-sync-mode", "max-age"],
  classic: ["max-age", "delivery-limit", "dead-letter-strategy"]
}

const types: Readonly<Partial<Record<string, string>>> = {
  quorum_queues: "quorum",
  classic_queues: "classic",
  streams: "stream"
}

const match = (rules: ReadonlyArray<Rule>, name: string, type: string): Definition =>
  rules.find(
    ({ applyTo, definition, pattern }) =>
      (applyTo === "all" || applyTo === "queues" || types[applyTo] === type) &&
      pattern.test(name) &&
      !((type === "quorum" || type === "classic") && unsupported[type].some((key) => Object.hasOwn(definition, key)))
  )?.definition ?? {}

/**
 * The definition that applies to a queue of this name and type: one user policy and one operator policy, with the smaller of numbers
 * that both set.
 */
export const definitionFor = ({ operator, user }: Rules, name: string, type: string): Definition => {
  const own = match(user, name, type)
  const limits = Object.entries(match(operator, name, type)).map(([key, limit]) => {
    const value = own[key]
    return [key, typeof value === "number" && typeof limit === "number" ? Math.min(value, limit) : limit] as const
  })
  return { ...own, ...Object.fromEntries(limits) }
}
