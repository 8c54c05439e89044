/** The brokers whose adapters this program has among its dependencies; `connect` loads the one that a URL asks for. */

interface Entry {
  readonly schemes: ReadonlyArray<string>
  /** Where it is, unless told otherwise; of a broker without it, one is started. */
  readonly url?: string
  /** Options for one that is started, as its URL has them. */
  readonly options?: Readonly<Record<string, string>>
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
  },
  sqs: {
    schemes: ["sqs"],
    // A poll is never cut off, and a run would end as much later.
    options: { waitTime: "1000" }
  }
} as const satisfies Record<string, Entry>

export type BrokerName = keyof typeof brokers

export const available = Object.keys(brokers) as ReadonlyArray<BrokerName>

/** What a broker that is started is told by its URL. */
export const optionsOf = (name: BrokerName): Readonly<Record<string, string>> => {
  const entry: Entry = brokers[name]
  return entry.options ?? {}
}

/** The broker of this name, or of this URL scheme; else what is wrong, in words. */
export const find = (by: "name" | "scheme", text: string): (Entry & { readonly name: BrokerName }) | string => {
  const schemesOf = (name: BrokerName): ReadonlyArray<string> => brokers[name].schemes
  const name = available.find((known) => (by === "name" ? known === text : schemesOf(known).includes(text)))
  if (name !== undefined) return { name, ...brokers[name] }
  const exist = `there is: ${available.join(", ")}`
  return by === "name" ? `no broker named "${text}"; ${exist}` : `no broker for ${text}: URLs; ${exist}`
}
