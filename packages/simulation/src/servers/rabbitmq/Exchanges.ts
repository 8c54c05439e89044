/**
 * The exchanges and bindings of a virtual host.
 *
 * | rule | source |
 * | --- | --- |
 * | names that begin with `amq.` are reserved | https://www.rabbitmq.com/docs/exchanges#names |
 * | an unknown type closes the channel, before 4.0 the connection | seen on 3.10.8 and 4.3.6 |
 * | an exchange without a route passes messages to its alternate exchange | https://www.rabbitmq.com/docs/ae |
 */
import * as Equivalence from "./Equivalence.ts"
import type * as Fields from "./Fields.ts"
import { Refusal } from "./Refusal.ts"
import * as Routing from "./Routing.ts"
import * as Version from "./Version.ts"

/** An exchange. */
export interface Exchange {
  readonly name: string
  readonly type: string
  readonly isDurable: boolean
  readonly arguments: Fields.Table
}

const types = ["direct", "fanout", "topic", "headers"]
const predeclared = [...types.map((type) => [`amq.${type}`, type] as const), ["amq.match", "headers"] as const]

/** Removes what the server removes from names in declarations. */
export const stripped = (name: string): string => name.replaceAll(/[\r\n]/g, "")

const refuseDefault = (name: string): void => {
  if (name === "") throw new Refusal(403, "operation not permitted on the default exchange")
}

const isSame = (one: Routing.Binding, other: Routing.Binding): boolean =>
  one.queue === other.queue &&
  one.key === other.key &&
  JSON.stringify(one.arguments) === JSON.stringify(other.arguments)

/** The exchanges of a virtual host. */
export class Exchanges {
  readonly #all = new Map<string, Exchange>()
  readonly #bindings = new Map<string, ReadonlyArray<Routing.Binding>>()
  readonly #version: string
  readonly #nameOf: (name: string) => string

  /** `nameOf` returns the words for an exchange in refusals. */
  constructor(version: string, nameOf: (name: string) => string) {
    this.#version = version
    this.#nameOf = nameOf
    for (const [name, type] of predeclared) this.#all.set(name, { name, type, isDurable: true, arguments: {} })
  }

  get all(): ReadonlyArray<Exchange> {
    return [...this.#all.values()]
  }

  get bindings(): ReadonlyArray<Routing.Binding> {
    return [...this.#bindings.values()].flat()
  }

  has(name: string): boolean {
    return name === "" || this.#all.has(name)
  }

  /** Refuses a missing exchange. */
  check(name: string): void {
    if (!this.has(name)) throw new Refusal(404, `no ${this.#nameOf(name)}`)
  }

  declare(given: string, type: string, durable: boolean, args: Fields.Table): void {
    const name = stripped(given)
    refuseDefault(name)
    const unknown = Version.isAtLeast(this.#version, "4.0.0") ? 406 : 503
    if (!types.includes(type)) throw new Refusal(unknown, `unknown exchange type '${type}'`)
    const known = this.#all.get(name)
    const object = this.#nameOf(name)
    if (known === undefined) {
      if (name.startsWith("amq.")) throw new Refusal(403, `exchange name '${name}' contains reserved prefix 'amq.*'`)
      this.#all.set(name, { name, type, isDurable: durable, arguments: args })
      return
    }
    Equivalence.property("type", object, type, known.type)
    Equivalence.property("durable", object, durable, known.isDurable)
    Equivalence.args(["alternate-exchange"], object, args, known.arguments)
  }

  delete(name: string): void {
    refuseDefault(name)
    this.#all.delete(name)
    this.#bindings.delete(name)
  }

  bind(binding: Routing.Binding): void {
    const { source } = binding
    this.check(source)
    const bindings = this.#bindings.get(source) ?? []
    if (!bindings.some((each) => isSame(each, binding))) this.#bindings.set(source, [...bindings, binding])
  }

  unbind(binding: Routing.Binding): void {
    this.#keep(binding.source, (each) => !isSame(each, binding))
  }

  /** Removes the bindings of a queue that is deleted. */
  unbindAll(queue: string): void {
    for (const source of this.#bindings.keys()) this.#keep(source, (each) => each.queue !== queue)
  }

  /** The names of the queues that an exchange passes a message to. */
  route(
    name: string,
    keys: ReadonlyArray<string>,
    headers: Fields.Table,
    seen: ReadonlySet<string> = new Set()
  ): ReadonlyArray<string> {
    if (name === "") return [...new Set(keys)]
    const exchange = this.#all.get(name)
    if (exchange === undefined || seen.has(name)) return []
    const found = (this.#bindings.get(name) ?? []).filter((binding) =>
      keys.some((key) => Routing.matches(exchange.type, binding, key, headers))
    )
    const queues = [...new Set(found.map(({ queue }) => queue))]
    const alternate = exchange.arguments["alternate-exchange"]
    return queues.length > 0 || typeof alternate !== "string"
      ? queues
      : this.route(alternate, keys, headers, new Set([...seen, name]))
  }

  #keep(source: string, isKept: (binding: Routing.Binding) => boolean): void {
    const bindings = this.#bindings.get(source)
    if (bindings !== undefined) this.#bindings.set(source, bindings.filter(isKept))
  }
}

/** Refuses a binding to the default exchange. */
export const checkSource = ({ source }: Routing.Binding): void => refuseDefault(source)
