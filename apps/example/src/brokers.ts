/** The brokers whose adapters are among this program's dependencies. `connect` loads the adapter for a URL. */

interface Entry {
  readonly schemes: ReadonlyArray<string>
  /** The default address. A broker without one is started. */
  readonly url?: string
  /** Options in the URL of a broker that is started. */
  readonly options?: Readonly<Record<string, string>>
}

const brokers = {
  memory: {
    schemes: ["memory"],
    url: "memory:"
  },
  sqlite: {
    schemes: ["sqlite"],
    // The messages of a killed run return soon.
    url: "sqlite:./dispatcher.db?lease=5s"
  },
  postgres: {
    schemes: ["postgres", "postgresql"]
  },
  rabbitmq: {
    schemes: ["amqp", "amqps"]
  },
  nsq: {
    schemes: ["nsq"]
  },
  sqs: {
    schemes: ["sqs"],
    // The adapter waits for the end of its last poll, and the run ends that much later.
    options: { waitTime: "1000" }
  }
} as const satisfies Record<string, Entry>

export type BrokerName = keyof typeof brokers

export const available = Object.keys(brokers) as ReadonlyArray<BrokerName> // the keys of the object above

export const optionsOf = (name: BrokerName): Readonly<Record<string, string>> => {
  const entry: Entry = brokers[name]
  return entry.options ?? {}
}

/** Finds a broker by its name or by the scheme of its URL. Returns an error message if there is none. */
export const find = (by: "name" | "scheme", text: string): (Entry & { readonly name: BrokerName }) | string => {
  const schemesOf = (name: BrokerName): ReadonlyArray<string> => brokers[name].schemes
  const name = available.find((known) => (by === "name" ? known === text : schemesOf(known).includes(text)))
  if (name !== undefined) return { name, ...brokers[name] }
  const exist = `there is: ${available.join(", ")}`
  return by === "name" ? `no broker named "${text}"; ${exist}` : `no broker for ${text}: URLs; ${exist}`
}
