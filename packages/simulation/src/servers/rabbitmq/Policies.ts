/** Policies and operator policies of a virtual host. https://www.rabbitmq.com/docs/policies */

/** A policy. */
export interface Policy {
  readonly name: string
  readonly pattern: string
  readonly definition: Readonly<Record<string, unknown>>
  readonly applyTo?: "all" | "queues" | "classic_queues" | "quorum_queues" | "exchanges"
  readonly priority?: number
}

/** The policies by kind. */
export interface Policies {
  readonly user: Map<string, Policy>
  readonly operator: Map<string, Policy>
}

/** A policy with one of these keys does not apply to queues of the type. */
const unsupported: Readonly<Record<string, ReadonlyArray<string>>> = {
  quorum: ["max-priority", "queue-mode", "single-active-consumer", "ha-mode", "max-age"],
  classic: ["max-age", "delivery-limit", "dead-letter-strategy"]
}

const matching = (policies: Map<string, Policy>, name: string, type: string): Policy | undefined =>
  [...policies.values()]
    .filter(
      ({ applyTo = "all", definition, pattern }) =>
        ["all", "queues", `${type}_queues`].includes(applyTo) &&
        new RegExp(pattern).test(name) &&
        !unsupported[type]?.some((key) => key in definition)
    )
    .toSorted((one, other) => (other.priority ?? 0) - (one.priority ?? 0))[0]

/** The definition that applies to a queue: one user policy and one operator policy, with the smaller of two numbers. */
export const definitionFor = (
  { operator, user }: Policies,
  name: string,
  type: string
): Readonly<Record<string, unknown>> => {
  const own = matching(user, name, type)?.definition ?? {}
  const limits = Object.entries(matching(operator, name, type)?.definition ?? {}).map(([key, limit]) => {
    const value = own[key]
    return [key, typeof value === "number" && typeof limit === "number" ? Math.min(value, limit) : limit] as const
  })
  return { ...own, ...Object.fromEntries(limits) }
}
