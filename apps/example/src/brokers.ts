/** The brokers whose adapters this program has among its dependencies; `connect` loads the one that a URL asks for. */

interface Entry {
  readonly schemes: ReadonlyArray<string>
  /** Where it is, unless told otherwise; of a broker without it, one is started. */
  readonly url?: string
}

const brokers = {
  memory: {
    schemes: ["memory"],
    url: "memory:"
  },
  rabbitmq: {
    schemes: ["amqp", "amqps"]
  },
  nsq: {
    schemes: ["nsq"]
  }
} as const satisfies Record<string, Entry>

/** Brokers of Requeue's design whose adapters do not exist yet. */
const planned = [{ name: "sqs", schemes: ["sqs"], adapter: "@requeue/adapter-sqs" }]

export type BrokerName = keyof typeof brokers

export const available = Object.keys(brokers) as ReadonlyArray<BrokerName>

/** The broker of this name, or of this URL scheme; else what is wrong, in words. */
export const find = (by: "name" | "scheme", text: string): (Entry & { readonly name: BrokerName }) | string => {
  const matches = (name: string, schemes: ReadonlyArray<string>) =>
    by === "name" ? name === text : schemes.includes(text)
  const name = available.find((known) => matches(known, brokers[known].schemes))
  if (name !== undefined) return { name, ...brokers[name] }
  const later = planned.find((broker) => matches(broker.name, broker.schemes))
  const exist = `there is: ${available.join(", ")}`
  if (later !== undefined) return `${later.name} needs ${later.adapter}, which does not exist yet; ${exist}`
  return by === "name" ? `no broker named "${text}"; ${exist}` : `no broker for ${text}: URLs; ${exist}`
}
