/**
 * A simulated nsqd: a state machine over `Host`, with the rules of the real one in virtual time. The tables of rules are in
 * the files that carry them out.
 *
 * | rule | source |
 * | --- | --- |
 * | an orderly restart keeps all messages and forgets deferrals; topics and channels stay, ephemeral ones do not | `Exit` in https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/nsqd.go |
 * | a killed nsqd keeps what is on disk only, and its topics and channels | https://nsq.io/overview/features_and_guarantees.html |
 * | a deleted topic ends the connections of its clients first; a client that subscribes before it is gone is forgotten with it | `DeleteExistingTopic`, same file |
 * | a new topic gets the channels that nsqlookupd knows for it | `GetTopic`, same file |
 *
 * Simplified: TLS, compression and authentication are missing, and nsqd counts a disk exactly after a kill.
 */
import type { Host } from "../Host.ts"
import type { Daemon } from "./Daemon.ts"
import type * as Facts from "./Facts.ts"
import { defaults, type Flags } from "./Flags.ts"
import type { Output } from "./Outbox.ts"
import * as Scan from "./Scan.ts"
import * as Session from "./Session.ts"
import * as Topic from "./Topic.ts"
import { isAtLeast } from "./Versions.ts"

/** An nsqd that may be down. */
export interface Nsqd extends Daemon {
  /** Its `--broadcast-address`. */
  readonly name: string
  readonly startedAt: () => number
  readonly isUp: () => boolean
  readonly existing: (topic: string) => Topic.Topic | undefined
  readonly topics: () => ReadonlyArray<Topic.Topic>
  /** Opens a connection. Call it only while nsqd is up. */
  readonly connect: (output: Output) => Session.Session
  /** Deletes a topic. Its clients are disconnected at once, and the topic is gone `takes` milliseconds later. */
  readonly removeTopic: (name: string, takes?: number) => void
  /** Ends, and starts again after `away` milliseconds. */
  readonly restart: (how: "orderly" | "kill", away: number) => void
  /** From now on stores nothing, for this reason; `undefined`: it stores again. */
  readonly setTrouble: (trouble: string | undefined) => void
  /** Sets its wall clock by this many milliseconds. */
  readonly stepClock: (millis: number) => void
  /** Called when nsqd has started, has ended, or has a topic or channel more or less. */
  readonly onChange: Set<() => void>
}

export interface Options {
  readonly name: string
  /** Default: 1.3.0. */
  readonly version?: string
  readonly flags?: Partial<Flags>
  /** Receives what happens to its messages. Default: nobody. */
  readonly report?: Facts.Report
  /** The numbers of copies and deliveries, which several nsqd may share. Default: from 1. */
  readonly numbers?: Numbers
  /** Returns the channels that nsqlookupd knows for a topic. Default: none. */
  readonly lookup?: (topic: string) => ReadonlyArray<string>
  /** Returns the error with which one message is refused. Default: none is. */
  readonly refuses?: Daemon["refuses"]
  /** Returns how long a lease of these milliseconds lasts: a wall clock that is set ends leases early. Default: as long. */
  readonly lasts?: (lease: number) => number
}

/** Returns the next numbers. */
export interface Numbers {
  readonly copy: () => number
  readonly delivery: () => number
}

/** Numbers from 1. */
export const numbering = (): Numbers => {
  let [copies, deliveries] = [0, 0]
  return { copy: () => ++copies, delivery: () => ++deliveries }
}

/** An nsqd without topics, which is up. */
// Long, because its functions share the topics and connections of one nsqd.
export const make = (outer: Host, options: Options): Nsqd => {
  const { lookup = () => [], name, numbers = numbering(), report = () => {}, version = "1.3.0" } = options
  const { lasts = (lease) => lease, refuses = () => undefined } = options
  const flags = { ...defaults, ...options.flags }
  let ahead = 0
  const host: Host = { ...outer, now: () => outer.now() + ahead }
  const scan = Scan.make(host, flags)
  const topics = new Map<string, Topic.Topic>()
  const connections = new Set<Output>()
  const onChange = new Set<() => void>()
  let [isUp, startedAt] = [true, host.now()]
  let trouble: string | undefined

  const changed = (): void => {
    for (const each of onChange) each()
  }

  const env: Topic.Env = {
    host,
    flags,
    scan,
    report,
    lasts,
    nsqd: name,
    number: numbers.delivery,
    copies: numbers.copy,
    passesDeferred: isAtLeast(version, "1.3.0")
  }

  const removeTopic = (topicName: string, takes = 0): void => {
    const topic = topics.get(topicName)
    if (topic === undefined) return
    const forget = (): void => {
      topic.remove("forget")
      topics.delete(topicName)
      changed()
    }
    topic.remove("close")
    if (takes === 0) forget()
    else host.after(takes, forget)
  }

  const topic = (topicName: string): Topic.Topic => {
    const found = topics.get(topicName)
    if (found !== undefined) return found
    const made = Topic.make(env, topicName, () => removeTopic(topicName))
    topics.set(topicName, made)
    for (const channel of lookup(topicName)) if (!channel.endsWith("#ephemeral")) made.channel(channel)
    changed()
    return made
  }

  const start = (): void => {
    isUp = true
    startedAt = host.now()
    scan.start()
    for (const each of topics.values()) each.start()
    changed()
  }

  return {
    name,
    host,
    flags,
    version,
    topic,
    trouble: () => trouble,
    refuses,
    startedAt: () => startedAt,
    isUp: () => isUp,
    existing: (topicName) => topics.get(topicName),
    topics: () => [...topics.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    connect: (output) => {
      connections.add(output)
      const session = Session.make(
        { host, flags, version, topic, trouble: () => trouble, refuses },
        {
          write: output.write,
          close: () => {
            connections.delete(output)
            output.close()
          }
        }
      )
      return {
        ...session,
        leave: () => {
          connections.delete(output)
          session.leave()
        }
      }
    },
    removeTopic,
    restart: (how, away) => {
      isUp = false
      for (const output of connections) output.close()
      connections.clear()
      for (const each of topics.values()) {
        each.shutDown(how === "orderly")
        if (each.name.endsWith("#ephemeral")) removeTopic(each.name)
      }
      changed()
      outer.after(away, start)
    },
    setTrouble: (wanted) => {
      trouble = wanted
    },
    stepClock: (millis) => {
      ahead += millis
      scan.rewind()
    },
    onChange
  }
}
