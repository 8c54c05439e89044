/**
 * The network between clients and nsqd: addresses, connections, and their faults. One nsqd may have several addresses.
 */
import type { Host } from "../Host.ts"
import type { Command } from "./Commands.ts"
import {
  atOnce,
  type Break,
  type Caller,
  type Conditions,
  type Failure,
  good,
  silence,
  type Way
} from "./Conditions.ts"
import * as HttpApi from "./HttpApi.ts"
import type { Lookupd } from "./Lookupd.ts"
import type { Nsqd } from "./Nsqd.ts"
import type { Frame } from "./Outbox.ts"
import * as Wire from "./Wire.ts"

/** The client's end of a connection. */
interface Link {
  readonly write: (command: Command) => void
  /** Closes the connection after what was written. */
  readonly end: () => void
  /** Drops the connection. Commands that were written before still arrive. */
  readonly drop: () => void
  readonly breakOff: (how: Break) => void
  /** Whether anything, such as a heartbeat, can still arrive. */
  readonly isAlive: () => boolean
}

/** Events on the client's end. */
interface Ends {
  readonly arrived: (frame: Frame) => void
  /** nsqd, or the network, has closed the connection. Not called after `drop`. */
  readonly closed: () => void
}

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
  readonly connect: (address: string, ends: Ends, caller: Caller) => Link | undefined
  /** Sends a request. Rejects if nothing listens at the URL. Never ends while it is unreachable. */
  readonly request: (url: string, method: string, path: string, caller: Caller) => Promise<HttpApi.Response>
  /** Cuts all connections, or those of one address, without a closing handshake. */
  readonly cut: (address?: string) => void
  /** From now on loses everything to and from an address, without closing connections; or no longer. */
  readonly setUnreachable: (address: string, isUnreachable: boolean) => void
  /** Makes the next command fail that matches. */
  readonly failNext: (failure: Failure, holds: (passing: Passing) => boolean) => Fault
}

const refused = (target: string): Error =>
  Object.assign(new Error(`connect ECONNREFUSED ${target}`), { code: "ECONNREFUSED" })

const reset = (): Error => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" })

/** A network without addresses. Default of `conditionsOf`: no faults. */
// Long, because its functions share the connections and faults.
export const make = (
  host: Host,
  conditionsOf: (caller: Caller, target: string) => Conditions = () => good(host)
): Network => {
  const nodes = new Map<string, Nsqd>()
  const interfaces = new Map<string, { readonly address: string; readonly nsqd: Nsqd }>()
  const lookups = new Map<string, Lookupd>()
  const connections = new Set<{ readonly address: string; readonly breakOff: (how: Break) => void }>()
  const unreachable = new Set<string>()
  const faults = new Set<Armed>()

  const armed = (passing: Passing): Armed | undefined => {
    const found = [...faults].find(({ happened, holds }) => !happened && holds(passing))
    if (found !== undefined) found.happened = true
    return found
  }

  // Long, because both directions share how a connection breaks.
  const connect: Network["connect"] = (address, ends, caller) => {
    if (unreachable.has(address)) return undefined
    const nsqd = nodes.get(address)
    if (nsqd?.isUp() !== true) throw refused(address)
    const conditions = conditionsOf(caller, address)
    let [isServed, isOpen, isBroken] = [true, true, false]

    const closed = (): void => {
      connections.delete(connection)
      if (!isOpen) return
      isOpen = false
      ends.closed()
    }
    const down = Wire.open<Frame>(host, () => conditions.takes("down"), {
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
    const up = Wire.open<Command>(host, (command) => conditions.takes("up", command), {
      arrived: (command) => {
        if (isServed) execute(command)
      },
      ended: abandoned
    })
    const session = nsqd.connect({
      write: (frame) => {
        if (conditions.breaks("down")) breakOff(conditions.how())
        down.write(frame)
      },
      close: () => {
        isServed = false
        down.end()
      }
    })

    const breakOff = ({ client, server, silent }: Break): void => {
      if (isBroken) return
      isBroken = true
      const silence = (): void => {
        up.cut()
        down.cut()
      }
      if (silent === 0) silence()
      else host.after(silent, silence)
      if (client !== undefined) host.after(client, closed)
      host.after(server, abandoned)
    }
    const execute = (command: Command): void => {
      const fault = armed({ nsqd, command, consumes: session.consumes() })
      const failure = fault?.failure ?? conditions.fails(command)
      if (failure === "lostRequest") {
        up.cut()
        return breakOff(conditions.how())
      }
      if (failure === "lateAnswer" && fault !== undefined) fault.release = down.hold()
      if (failure === "lostAnswer") down.cut()
      const before = nsqd.trouble()
      if (failure === "refused") nsqd.setTrouble("the disk is full")
      session.execute(command)
      nsqd.setTrouble(before)
      if (failure === "lostAnswer") {
        up.cut()
        breakOff(conditions.how())
      }
    }
    const connection = { address, breakOff }
    connections.add(connection)
    return {
      write: (command) => {
        if (conditions.breaks("up")) breakOff(conditions.how())
        up.write(command)
      },
      end: up.end,
      drop: () => {
        isOpen = false
        up.end()
        connections.delete(connection)
      },
      breakOff,
      isAlive: () => !isBroken
    }
  }

  /** Carries out a request that has arrived. */
  const serve = (url: string, method: string, path: string): HttpApi.Response => {
    const lookupd = lookups.get(url)
    if (lookupd?.isUp() === true) return lookupd.request(path)
    const found = interfaces.get(url)
    if (found?.nsqd.isUp() !== true) throw refused(url)
    return HttpApi.request(found.nsqd, method, path)
  }

  const request: Network["request"] = (url, method, path, caller) =>
    new Promise((resolve, reject) => {
      const found = interfaces.get(url)
      if (found !== undefined && unreachable.has(found.address)) return
      const conditions = conditionsOf(caller, url)
      /** Goes one way, unless the connection breaks there. */
      const go = (way: Way, then: () => void): void => {
        if (!conditions.breaks(way)) return void host.after(conditions.takes(way), then)
        const { client } = conditions.how()
        if (client !== undefined) host.after(client, () => reject(reset()))
      }
      go("up", () => {
        try {
          const response = serve(url, method, path)
          go("down", () => resolve(response))
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)))
        }
      })
    })

  return {
    host,
    add: (nsqd, address, http) => {
      nodes.set(address, nsqd)
      interfaces.set(http, { address, nsqd })
    },
    addLookupd: (lookupd, http) => void lookups.set(http, lookupd),
    connect,
    request,
    cut: (address) => {
      for (const each of connections) if (address === undefined || each.address === address) each.breakOff(atOnce)
    },
    setUnreachable: (address, isUnreachable) => {
      if (!isUnreachable) return void unreachable.delete(address)
      unreachable.add(address)
      const lost: Break = { silent: 0, client: undefined, server: silence }
      for (const each of connections) if (each.address === address) each.breakOff(lost)
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
