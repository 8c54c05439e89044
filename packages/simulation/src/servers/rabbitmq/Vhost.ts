/**
 * A virtual host: queues, exchanges, bindings and policies, and the way of messages between them.
 *
 * | rule | source |
 * | --- | --- |
 * | CR and LF in the names of declared queues and exchanges are removed | `strip_cr_lf` in `rabbit_channel.erl` |
 * | names that begin with `amq.` are reserved | https://www.rabbitmq.com/docs/queues#names |
 * | a durable queue without a type gets the virtual host's default type | https://www.rabbitmq.com/docs/vhosts#default-queue-type |
 * | CC and BCC are further routing keys; BCC is removed | https://www.rabbitmq.com/docs/sender-selected |
 * | a dead letter is published again, with its death; one in a cycle is dropped | https://www.rabbitmq.com/docs/dlx |
 */
import type { Host } from "../Host.ts"
import * as Equivalence from "./Equivalence.ts"
import * as Exchanges from "./Exchanges.ts"
import * as Fields from "./Fields.ts"
import * as Message from "./Message.ts"
import * as Policies from "./Policies.ts"
import type { Entry } from "./Entry.ts"
import type { Declaration, Fact } from "./Fact.ts"
import { Queue } from "./Queue.ts"
import { Refusal } from "./Refusal.ts"
import type { Binding } from "./Routing.ts"
import * as Settings from "./Settings.ts"
import * as Version from "./Version.ts"

/** The flags and arguments of a declaration. */
export interface Flags {
  readonly durable: boolean
  readonly exclusive?: boolean
  readonly autoDelete?: boolean
  readonly arguments: Fields.Table
}

interface Env {
  readonly host: Host
  readonly version: string
  readonly name: string
  readonly defaultQueueType: Settings.Type
  readonly onFact: (fact: Fact) => void
}

const textsOf = (value: unknown): ReadonlyArray<string> => (Array.isArray(value) ? value.map(String) : [])

/** A virtual host. */
export class Vhost {
  readonly queues = new Map<string, Queue>()
  readonly exchanges: Exchanges.Exchanges
  readonly policies: Policies.Policies = { user: new Map(), operator: new Map() }
  readonly #env: Env
  /** The settings of queues under the policies of now. */
  #settings = new WeakMap<Declaration, Settings.Settings>()
  #entries = 0
  #generated = 0

  constructor(env: Env) {
    this.#env = env
    this.exchanges = new Exchanges.Exchanges(env.version, (name) => this.nameOf("exchange", name))
  }

  /** The definition of the policies for a queue. */
  policyOf({ name, type }: Pick<Declaration, "name" | "type">): Fields.Table {
    return Policies.definitionFor(this.policies, name, type)
  }

  settingsOf(declaration: Declaration): Settings.Settings {
    const known = this.#settings.get(declaration)
    if (known !== undefined) return known
    const made = Settings.of(declaration.type, declaration.arguments, this.policyOf(declaration), this.#env.version)
    this.#settings.set(declaration, made)
    return made
  }

  /** Sets a policy, or removes it. */
  setPolicy(kind: "user" | "operator", name: string, policy: Omit<Policies.Policy, "name"> | undefined): void {
    if (policy === undefined) this.policies[kind].delete(name)
    else this.policies[kind].set(name, { name, ...policy })
    this.#settings = new WeakMap()
    for (const queue of this.queues.values()) {
      queue.touch()
      queue.serve()
    }
  }

  /** The words for an object in refusals. */
  nameOf(kind: "queue" | "exchange", name: string): string {
    return `${kind} '${name}' in vhost '${this.#env.name}'`
  }

  /** An existing queue that this connection may use. */
  queue(name: string, owner: object): Queue {
    const found = this.queues.get(name)
    if (found === undefined) throw new Refusal(404, `no ${this.nameOf("queue", name)}`)
    const { declaration } = found
    if (declaration.owner === undefined || declaration.owner === owner) return found
    throw new Refusal(
      405,
      `cannot obtain exclusive access to locked ${this.nameOf("queue", name)}. It could be originally declared on ` +
        "another connection or the exclusive property value does not match that of the original declaration."
    )
  }

  declareQueue(given: string, flags: Flags, owner: object): Queue {
    const name = given === "" ? `amq.gen-${++this.#generated}` : Exchanges.stripped(given)
    const object = this.nameOf("queue", name)
    const isDefault = flags.durable && !flags.exclusive && !flags.autoDelete
    const type: unknown = flags.arguments["x-queue-type"] ?? (isDefault ? this.#env.defaultQueueType : "classic")
    const args: Fields.Table =
      type === "classic" || "x-queue-type" in flags.arguments
        ? flags.arguments
        : { ...flags.arguments, "x-queue-type": type }
    if (this.queues.has(name)) return this.#same(this.queue(name, owner), flags, args)
    if (given.startsWith("amq.")) throw new Refusal(403, `queue name '${name}' contains reserved prefix 'amq.*'`)
    const { durable, exclusive = false } = flags
    Equivalence.check(object, { arguments: args, type, durable, exclusive })
    return this.#make({
      name,
      type: type as Settings.Type, // It was checked.
      arguments: args,
      isDurable: flags.durable,
      isAutoDelete: flags.autoDelete === true,
      owner: flags.exclusive === true ? owner : undefined
    })
  }

  #same(queue: Queue, flags: Flags, args: Fields.Table): Queue {
    const { version } = this.#env
    const { declaration } = queue
    const object = this.nameOf("queue", declaration.name)
    Equivalence.property("durable", object, flags.durable, declaration.isDurable)
    Equivalence.property("auto_delete", object, flags.autoDelete === true, declaration.isAutoDelete)
    // From 4.0 on, the server adds the type to declarations and to queues that have none.
    const typed = (given: Fields.Table): Fields.Table =>
      Version.isAtLeast(version, "4.0.0") ? { "x-queue-type": "classic", ...given } : given
    Equivalence.queueArgs(declaration.type, version, object, typed(args), typed(declaration.arguments))
    if (!queue.isQuorum) queue.touch()
    return queue
  }

  #make(declaration: Declaration): Queue {
    const { host, onFact, version } = this.#env
    const queue: Queue = new Queue(declaration, {
      host,
      version,
      onFact,
      nextId: () => ++this.#entries,
      settings: () => this.settingsOf(declaration),
      send: (entry, reason, settings) => this.#deadLetter(entry, declaration.name, reason, settings),
      expire: () => this.deleteQueue(declaration.name)
    })
    this.queues.set(declaration.name, queue)
    return queue
  }

  deleteQueue(name: string): number {
    const queue = this.queues.get(name)
    if (queue === undefined) return 0
    const { ready } = queue.counts
    this.queues.delete(name)
    this.exchanges.unbindAll(name)
    queue.delete()
    return ready
  }

  bind(binding: Binding, owner: object): void {
    Exchanges.checkSource(binding)
    this.queue(binding.queue, owner)
    this.exchanges.bind(binding)
  }

  /** Publishes a message. Returns how many queues it reached, and whether all of them have stored it. */
  publish(publication: Message.Publication) {
    const { content, exchange, properties, routingKey, table } = publication
    this.exchanges.check(exchange)
    Equivalence.checkExpiration(properties.expiration)
    const headers = Fields.headersOf(publication)
    const keys = [routingKey, ...textsOf(headers["CC"])] as const
    const hasHidden = "BCC" in headers
    const message: Message.Message = {
      exchange,
      routingKeys: keys,
      content,
      properties,
      table: hasHidden ? Fields.encode({ ...headers, BCC: undefined }) : table,
      deaths: Message.sentDeaths(headers, this.#env.version),
      firstDeath: undefined,
      lastDeath: undefined
    }
    const targets = this.route(exchange, [...keys, ...textsOf(headers["BCC"])], headers)
    const stored = targets.map((queue) => queue.publish(message, { _tag: "Published", publication }))
    return { targets: targets.length, isStored: stored.every(Boolean) }
  }

  /** The queues that an exchange passes a message to. */
  route(...request: Parameters<Exchanges.Exchanges["route"]>): ReadonlyArray<Queue> {
    return this.exchanges.route(...request).flatMap((name) => this.queues.get(name) ?? [])
  }

  #deadLetter(entry: Entry, from: string, reason: Message.Reason, settings: Settings.Settings): boolean {
    const { deadLetterExchange: exchange, deadLetterRoutingKey: key } = settings
    if (exchange === undefined || !this.exchanges.has(exchange)) return false
    const dead = Message.dies(entry.message, from, reason, Math.floor(this.#env.host.now() / 1000))
    const letter: Message.Message = { ...dead, exchange, routingKeys: key === undefined ? dead.routingKeys : [key] }
    const targets = this.route(exchange, letter.routingKeys, Fields.headersOf(letter))
    // Of an automatic cycle, nothing is left.
    const open =
      reason === "rejected" ? targets : targets.filter((queue) => !Message.isCycle(letter, queue.declaration.name))
    return targets.length > 0 && open.map((queue) => queue.publish(letter, { _tag: "GivenUp", entry })).every(Boolean)
  }
}
