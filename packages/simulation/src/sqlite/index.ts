/** The adapter for SQLite on a real file. */
import { SqliteBroker } from "@requeue/adapter-sqlite"
import { Driver } from "@requeue/adapter-sqlite/driver"
import type { Delivery } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { DatabaseSync, StatementSync } from "node:sqlite"
import { epoch, isOfWorld, type Machine, randomOf } from "../world/Machine.ts"
import type { Model } from "../world/Model.ts"
import type { Parcel } from "../world/Parcel.ts"
import type { World } from "../world/World.ts"
import * as Beats from "./Beats.ts"
import * as Connections from "./Connections.ts"
import * as Disk from "./Disk.ts"
import * as SqliteDriver from "./Driver.ts"
import * as Faults from "./Faults.ts"
import * as Transactions from "./Transactions.ts"
import * as Witness from "./Witness.ts"

/** The probability of this setting. */
const chances = { powerCut: 0.7, torn: 0.5, later: 0.5, full: 0.7 }

/** Milliseconds until a producer outside tries again to write to a locked file. */
const pause = 20

/** A connection of the world's own, to the file of each boot, with its statements. */
const reading = ({ boot, open }: Disk.Disk) => {
  let own: { readonly boot: number; readonly db: DatabaseSync; readonly statements: Map<string, StatementSync> }
  const connect = () => {
    own = { boot: boot(), db: open(), statements: new Map() }
  }
  const statement = (sql: string): StatementSync => {
    if (own.boot !== boot()) {
      own.db.close()
      connect()
    }
    const { db, statements } = own
    const made = statements.get(sql) ?? db.prepare(sql)
    statements.set(sql, made)
    return made
  }
  connect()
  return { statement, db: () => own.db }
}

const insert = "INSERT INTO requeue_message (queue, at, metadata, headers, body) VALUES (?, ?, ?, ?, ?)"

// Long, because its parts share the machines.
/** A file without messages. */
export const make = (world: World): Model => {
  const { draw, scenario } = world
  const disk = Disk.make(scenario.operations.some(({ what }) => what._tag === "Restart"))
  const isFull = draw.chance("synchronous", chances.full)
  const machines = new Map<Machine, Connections.Connections>()
  const watchers = SqliteDriver.watchers(world)
  const { db, statement } = reading(disk)
  const witness = Witness.make(world, statement, isFull)
  let awayUntil = 0
  const isAway = (): boolean => world.now() < awayUntil

  const kill = (machine: Machine): void => {
    if (!machine.isAlive() || isOfWorld(machine)) return
    world.record({ _tag: "Killed", process: machine.name, because: "scenario" })
    machine.kill()
  }
  const faultsOf = Faults.make(world, kill)

  const committed = (by: Witness.Committer): void => {
    witness.committed(by)
    watchers.notify(by.machine?.name)
  }

  const clientOf = (machine: Machine) => {
    const faults = faultsOf(machine)
    const onCommit = (of: "adapter" | "program"): void => committed({ of, machine })
    const connections = Connections.make({ disk, machine, faults, isAway, onCommit })
    machines.set(machine, connections)
    machine.onKilled(() => void machines.delete(machine))
    return SqliteDriver.make(world, { connections, disk, faults, isAway, machine, watchers })
  }

  /** By receipt: a power cut undoes claims, so another delivery may have the same row and token. */
  const numbers = new WeakMap<object, number>()
  const numberOf = ({ receipt }: Delivery.Delivery): number => {
    const { seq, token } = receipt as { readonly seq: number; readonly token: number } // as the adapter makes them
    const number = numbers.get(receipt as object) ?? witness.numberOf(seq, token) // the same object
    numbers.set(receipt as object, number) // the same object
    return number
  }

  const publish = (queue: string, { body, headers, metadata }: Parcel, stored: () => void): void => {
    try {
      if (isAway()) throw Faults.sqliteError(14, "unable to open database file")
      statement("INSERT OR IGNORE INTO requeue_queue VALUES (?)")
      db().exec("BEGIN IMMEDIATE")
    } catch {
      return void world.after(pause, () => publish(queue, { body, headers, metadata }, stored))
    }
    statement("INSERT OR IGNORE INTO requeue_queue VALUES (?)").run(queue)
    statement(insert).run(queue, Math.floor(epoch + world.now()), metadata ?? null, JSON.stringify(headers), body)
    db().exec("COMMIT")
    disk.sync()()
    committed({ of: "foreign", machine: undefined })
    stored()
  }

  const restart = (away: number): void => {
    for (const machine of machines.keys()) kill(machine)
    if (!draw.chance("power", chances.powerCut)) return
    const isTorn = draw.chance("torn", chances.torn)
    disk.powerCut(() => isTorn && draw.chance("later", chances.later))
    awayUntil = world.now() + away
    witness.rebooted()
  }

  /** Another program has a transaction open. */
  const throttle = (millis: number): void => {
    const locking = disk.open()
    try {
      locking.exec("BEGIN IMMEDIATE")
    } catch {
      return locking.close()
    }
    world.after(millis, () => locking.close())
  }

  return {
    client: (machine) =>
      SqliteBroker.make({ url: `sqlite:${disk.path}`, lease: scenario.lease }).pipe(
        Effect.provideService(Driver, clientOf(machine)),
        Effect.provideService(Random.Random, randomOf(world, machine)),
        Effect.updateService(Clock.Clock, (clock) => Beats.clockOf(world, machine, clock)),
        Effect.map((service) => ({ ...service, numberOf }))
      ),
    begin: (machine) => Transactions.make(world, machine, machines.get(machine)!, isFull),
    publish,
    restart,
    throttle,
    close: () => {
      for (const connections of machines.values()) connections.close()
      db().close()
      disk.close()
    }
  }
}
