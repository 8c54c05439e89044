/**
 * The network between clients and nsqd: addresses, connections, and their faults. One nsqd may have several addresses.
 */
import type { Host } from "../Host.ts"
import type { Command } from "./Commands.ts"
import * as HttpApi from "./HttpApi.ts"
import type { Lookupd } from "./Lookupd.ts"
import type { Nsqd } from "./Nsqd.ts"
import type { Frame } from "./Outbox.ts"
import type { Session } from "./Session.ts"
import * as Wire from "./Wire.ts"

/** The client's end of a connection. */
interface Link {
  readonly write: (command: Command) => void
  /** Closes the connection after what was written. */
  readonly end: () => void
  /** Drops the connection. Commands that were written before still arrive. */
  readonly drop: () => void
  /** Whether anything, such as a heartbeat, can still arrive. */
  readonly isAlive: () => boolean
}

/** Events on the client's end. */
interface Ends {
  readonly arrived: (frame: Frame) => void
  /** nsqd, or the network, has closed the connection. Not called after `drop`. */
  readonly closed: () => void
}

/** The effect of a fault on a command: see `Harness.Failure`. `refused` is for publishes. */
type Failure = "refused" | "lostRequest" | "lostAnswer" | "lateAnswer"

/** A fault that waits for its command, or has happened. */
interface Fault {
  readonly happened: () => boolean
  /** Takes it back; a late answer arrives. */
  readonly end: () => void
}

/** A command on its way, and the topic that its connection consumes. */
export interface Passing {
  readonly nsqd: Nsqd
  readonly command: Command
  readonly consumes: string | undefined
}

interface Armed {
  readonly holds: (passing: Passing) => boolean
  readonly failure: Failure
  happened: boolean
  release: () => void
}

export interface Network {
  readonly host: Host
  /** Gives an nsqd an address, as `host:port`, and its HTTP interface, as a URL. */
  readonly add: (nsqd: Nsqd, address: string, http: string) => void
  readonly addLookupd: (lookupd: Lookupd, http: string) => void
  /** Opens a connection. Throws if nothing listens at the address. Undefined while the address is unreachable. */
  readonly connect: (address: string, ends: Ends) => Link | undefined
  /** Sends a request. Throws if nothing listens at the URL. Undefined while it is unreachable. */
  readonly request: (url: string, method: string, path: string) => HttpApi.Response | undefined
  /** Cuts all connections, or those of one address, without a closing handshake. */
  readonly cut: (address?: string) => void
  /** From now on loses everything to and from an address, without closing connections; or no longer. */
  readonly setUnreachable: (address: string, isUnreachable: boolean) => void
  /** Makes the next command fail that matches. */
  readonly failNext: (failure: Failure, holds: (passing: Passing) => boolean) => Fault
}

/** Milliseconds after which nsqd ends a connection that it does not hear: two heartbeats of 10 seconds. */
const silence = 20_000

const refused = (target: string): Error =>
  Object.assign(new Error(`connect ECONNREFUSED ${target}`), { code: "ECONNREFUSED" })

/** A network without addresses. */
// Long, because its functions share the connections and faults.
export const make = (host: Host, latency: Wire.Latency = { least: 0.1, most: 0.9 }): Network => {
  const nodes = new Map<string, Nsqd>()
  const interfaces = new Map<string, { readonly address: string; readonly nsqd: Nsqd }>()
  const lookups = new Map<string, Lookupd>()
  const connections = new Set<{ readonly address: string; readonly cut: () => void; readonly lose: () => void }>()
  const unreachable = new Set<string>()
  const faults = new Set<Armed>()

  const faultOf = (passing: Passing): Armed | undefined => {
    const found = [...faults].find(({ happened, holds }) => !happened && holds(passing))
    if (found !== undefined) found.happened = true
    return found
  }

  const connect: Network["connect"] = (address, ends) => {
    if (unreachable.has(address)) return undefined
    const nsqd = nodes.get(address)
    if (nsqd?.isUp() !== true) throw refused(address)
    let [isServed, isOpen, isAlive] = [true, true, true]

    const closed = (): void => {
      connections.delete(connection)
      if (!isOpen) return
      isOpen = false
      ends.closed()
    }
    const down = Wire.open<Frame>(host, latency, {
      arrived: (frame) => {
        if (isOpen) ends.arrived(frame)
      },
      ended: closed
    })
    /** The client's end is gone. */
    const abandoned = (): void => {
      if (!isServed) return
      isServed = false
      session.leave()
      down.end()
    }
    const up = Wire.open<Command>(host, latency, {
      arrived: (command) => {
        if (isServed) execute(session, command)
      },
      ended: abandoned
    })
    const session = nsqd.connect({
      write: down.write,
      close: () => {
        isServed = false
        down.end()
      }
    })

    const cut = (): void => {
      up.cut()
      down.cut()
      host.after(latency.most, closed)
      host.after(latency.most, abandoned)
    }
    const execute = (to: Session, command: Command): void => {
      const fault = faultOf({ nsqd, command, consumes: to.consumes() })
      if (fault?.failure === "lostRequest") return cut()
      if (fault?.failure === "lateAnswer") fault.release = down.hold()
      if (fault?.failure === "lostAnswer") down.cut()
      if (fault?.failure === "refused") nsqd.setTrouble("the disk is full")
      to.execute(command)
      if (fault?.failure === "refused") nsqd.setTrouble(undefined)
      if (fault?.failure === "lostAnswer") cut()
    }
    const connection = {
      address,
      cut,
      lose: () => {
        isAlive = false
        up.cut()
        down.cut()
        host.after(silence, abandoned)
      }
    }
    connections.add(connection)
    return {
      write: up.write,
      end: up.end,
      drop: () => {
        isOpen = false
        up.end()
        connections.delete(connection)
      },
      isAlive: () => isAlive
    }
  }

  return {
    host,
    add: (nsqd, address, http) => {
      nodes.set(address, nsqd)
      interfaces.set(http, { address, nsqd })
    },
    addLookupd: (lookupd, http) => void lookups.set(http, lookupd),
    connect,
    request: (url, method, path) => {
      const lookupd = lookups.get(url)
      if (lookupd?.isUp() === true) return lookupd.request(path)
      const found = interfaces.get(url)
      if (found !== undefined && unreachable.has(found.address)) return undefined
      if (found?.nsqd.isUp() !== true) throw refused(url)
      return HttpApi.request(found.nsqd, method, path)
    },
    cut: (address) => {
      for (const each of connections) if (address === undefined || each.address === address) each.cut()
    },
    setUnreachable: (address, isUnreachable) => {
      if (!isUnreachable) return void unreachable.delete(address)
      unreachable.add(address)
      for (const each of connections) if (each.address === address) each.lose()
    },
    failNext: (failure, holds) => {
      const fault: Armed = { holds, failure, happened: false, release: () => {} }
      faults.add(fault)
      return {
        happened: () => fault.happened,
        end: () => {
          faults.delete(fault)
          fault.release()
        }
      }
    }
  }
}
