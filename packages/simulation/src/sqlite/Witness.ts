/**
 * Writes the facts of the file into the history: after each commit, the differences to its rows before. It reads the file as any
 * program could, and knows nothing of how the adapter changes it.
 */
import { blocked, free } from "@requeue/adapter-sqlite/driver"
import type { StatementSync } from "node:sqlite"
import type { Delivery } from "../History.ts"
import { receipts } from "../Scenario.ts"
import { epoch, type Machine } from "../world/Machine.ts"
import * as Sources from "../world/Sources.ts"
import { keyOf, type Parcel, taleOf } from "../world/Parcel.ts"
import type { World } from "../world/World.ts"

type Columns = Record<string, any> // of any type

/** A row without its body. */
interface Row {
  readonly seq: number
  readonly queue: string
  readonly at: number
  readonly leased: number
  readonly token: number
  readonly deliveries: number
  readonly metadata: string | null
}

/** A copy, which is a row until a retry or a dead letter replaces that. */
interface Known {
  readonly row: Row
  readonly copy: number
  readonly key: number
  /** The delivery that has it, until it is back. */
  readonly held: { readonly delivery: Delivery; readonly process: string } | undefined
}

/** Who commits. Producers outside have true clocks. */
export interface Committer {
  readonly of: "adapter" | "program" | "foreign"
  readonly machine: Pick<Machine, "name" | "wallClock"> | undefined
}

export interface Witness {
  /** A transaction was committed. */
  readonly committed: (by: Committer) => void
  /** The power is back. */
  readonly rebooted: () => void
  /** The number of the delivery with this row and token. */
  readonly numberOf: (seq: number, token: number) => Delivery
}

const isSame = (one: Row, other: Row): boolean =>
  one.queue === other.queue && one.at === other.at && one.metadata === other.metadata

// Long, because everything in it is one state.
/** Watches a file; `reader` returns a statement on it. `isFull`: whether each commit of a program is synced. */
export const make = (world: World, reader: (sql: string) => StatementSync, isFull: boolean): Witness => {
  const { activity, record } = world
  const trueClock = (): number => epoch + world.now()
  const sources = Sources.make(world)
  let known = new Map<number, Known>()
  /** All copies that each row has been. */
  const copies = new Map<number, Array<Known>>()
  const numbers = new Map<string, Delivery>()
  /** The deliveries that programs have written, and sent, in transactions; by the numbers of their rows. */
  let [rows, sends] = [new Map<number, Delivery>(), new Map<number, Delivery>()]
  /** The deliveries that removed rows in transactions since the last boot. */
  const acked = new Map<number, Delivery>()

  const all = (sql: string): ReadonlyArray<Columns> => {
    try {
      return reader(sql).all()
    } catch (error) {
      // A power cut has taken a table that was not synced.
      if (String(error).includes("no such table")) return []
      throw error
    }
  }

  const read = () =>
    all(
      `SELECT seq, queue, at, iif(leased IN (${free}, ${blocked}), 0, leased) AS leased, token, deliveries, metadata FROM requeue_message`
    ) as ReadonlyArray<Row> // the columns of the table

  const parcelOf = ({ metadata, seq }: Row): Parcel => {
    const { body, headers } = reader("SELECT body, headers FROM requeue_message WHERE seq = ?").get(seq)!
    return {
      body: body as Uint8Array, // a column of that type
      headers: JSON.parse(String(headers ?? "{}")),
      metadata: metadata ?? undefined
    }
  }

  const know = (each: Known): void => void known.set(each.row.seq, each)

  const dueIn = (time: number, now: number): number => world.now() + Math.max(0, time - now)

  const store = (row: Row, key: number, of: Delivery | undefined, process: string | undefined, now: number): void => {
    const { at, metadata, queue, seq } = row
    const copy = world.number()
    const made: Known = { row: { ...row, leased: 0, token: -1 }, copy, key, held: undefined }
    know(made)
    copies.set(seq, [...(copies.get(seq) ?? []), made])
    const tale = taleOf(metadata ?? undefined)
    record({ _tag: "Stored", copy, key, queue, due: dueIn(at, now), process, of, native: false, ...tale })
  }

  const added = (row: Row, process: string | undefined, now: number): void => {
    const parcel = parcelOf(row)
    const of = process === undefined ? undefined : sources.find(process, parcel, row.queue)
    store(row, keyOf(parcel), of, process, now)
  }

  const replaced = ({ copy, held, key, row: before }: Known, row: Row, process: string | undefined, now: number) => {
    store(row, key, held?.delivery, process, now)
    record({ _tag: "Gone", copy, key, queue: before.queue, why: "settled", delivery: held?.delivery })
  }

  /** Whether a process may return a message in the transaction in which it takes it again: one browser for another. */
  const mayReturn = (delivery: Delivery, process: string): boolean =>
    activity.has("settle", process, delivery) || activity.has("browse", process)

  /** A delivery has ended: its process has returned it, or its lease is over by the clock of the process that commits. */
  const back = (each: Known, row: Row, process: string | undefined, now: number): void => {
    const { copy, held, key, row: before } = each
    if (held === undefined) return
    know({ ...each, held: undefined })
    const left = before.leased - now
    const isTaken = row.token !== before.token
    const isAsked = held.process === process && (!isTaken || mayReturn(held.delivery, process))
    // Another delivery while this one has its lease.
    if (left > 0 && !isAsked && isTaken) return
    const why = left > 0 && isAsked ? "asked" : "lease"
    const early = left > 0 && !isAsked ? { early: left } : {}
    record({ _tag: "Back", copy, key, delivery: held.delivery, due: world.now(), why, ...early })
  }

  const handedOut = (row: Row, process: string): void => {
    const each = known.get(row.seq)!
    const { copy, key } = each
    const delivery = world.number()
    know({ ...each, held: { delivery, process } })
    numbers.set(`${row.seq} ${row.token}`, delivery)
    sources.given(process, key, delivery)
    record({ _tag: "HandedOut", copy, key, queue: row.queue, delivery, process, count: row.deliveries })
  }

  const changed = (each: Known, row: Row, process: string | undefined, now: number): void => {
    if (!isSame(each.row, row)) replaced(each, row, process, now)
    else if (each.held !== undefined && (row.leased === 0 || row.token !== each.row.token))
      back(each, row, process, now)
  }

  const gone = ({ copy, held, key, row }: Known, { machine, of }: Committer): void => {
    known.delete(row.seq)
    const isPurge = machine !== undefined && activity.has("purge", machine.name) && held === undefined
    const why = isPurge ? "purged" : of === "program" ? "transaction" : "settled"
    record({ _tag: "Gone", copy, key, queue: row.queue, why, delivery: held?.delivery })
  }

  const receiptOf = (row: Row): Delivery => JSON.parse(Buffer.from(parcelOf(row).body).toString()).of

  /** The rows and receipts of programs. */
  const ofPrograms = (stored: ReadonlyArray<Row>) => ({
    rows: new Map(all("SELECT rowid, delivery FROM mine").map(({ delivery, rowid }) => [rowid, delivery])),
    sends: new Map(
      stored
        .filter(({ queue }) => queue === receipts)
        .map((row) => [row.seq, sends.get(row.seq) ?? receiptOf(row)] as const)
    )
  })

  const without = (one: ReadonlyMap<number, Delivery>, other: ReadonlyMap<number, Delivery>) =>
    [...one].filter(([id]) => !other.has(id)).map(([, delivery]) => delivery)

  const committed: Witness["committed"] = (by) => {
    const { machine, of } = by
    const process = machine?.name
    const now = machine?.wallClock() ?? trueClock()
    const stored = read()
    const messages = stored.filter(({ queue }) => queue !== receipts)
    for (const row of messages) {
      const each = known.get(row.seq)
      if (each === undefined) added(row, process, now)
      else changed(each, row, process, now)
    }
    const present = new Set(messages.map(({ seq }) => seq))
    const removed = [...known.values()].filter(({ row }) => !present.has(row.seq))
    for (const each of removed) gone(each, by)
    for (const row of messages) {
      const each = known.get(row.seq)!
      if (process !== undefined && row.leased > 0 && row.token !== each.row.token) handedOut(row, process)
      know({ ...known.get(row.seq)!, row })
    }
    const mine = ofPrograms(stored)
    const news = { rows: without(mine.rows, rows), sends: without(mine.sends, sends) }
    ;({ rows, sends } = mine)
    const done = of === "program" ? removed.map(({ held, row }) => [row.seq, held?.delivery ?? -1] as const) : []
    for (const [seq, delivery] of done) acked.set(seq, delivery)
    if (done.length + news.rows.length + news.sends.length === 0) return
    record({ _tag: "Committed", process: process ?? "", acked: done.map(([, delivery]) => delivery), ...news })
  }

  /** Finds the copy that a row is after a power cut, which may have undone what became of it. */
  const recovered = (row: Row, before: Known | undefined, now: number): void => {
    const isHere = before !== undefined && isSame(before.row, row)
    const found = isHere ? before : copies.get(row.seq)!.findLast((each) => isSame(each.row, row))!
    const isUndone = !isHere || before.row.token !== row.token
    know({ ...found, row, held: isUndone ? undefined : found.held })
    if (!isUndone) return
    const { copy, held, key } = found
    record({ _tag: "Back", copy, key, delivery: held?.delivery, due: dueIn(row.leased, now), why: "restart" })
  }

  const rebooted = (): void => {
    const now = trueClock()
    const before = known
    known = new Map()
    const stored = read()
    for (const row of stored) if (row.queue !== receipts) recovered(row, before.get(row.seq), now)
    for (const { copy, key, row } of before.values()) {
      if (known.get(row.seq)?.copy === copy) continue
      record({ _tag: "Gone", copy, key, queue: row.queue, why: "forgotten", delivery: undefined })
    }
    // A number above the last one is of a message that was never sent.
    const last = Number(all("SELECT seq FROM sqlite_sequence WHERE name = 'requeue_message'")[0]?.["seq"] ?? 0)
    const revived = [...acked].flatMap(([seq, delivery]) => (known.has(seq) || seq > last ? delivery : []))
    acked.clear()
    const mine = ofPrograms(stored)
    const lost = { rows: without(rows, mine.rows), sends: without(sends, mine.sends) }
    ;({ rows, sends } = mine)
    record({ _tag: "Rebooted", ...lost, revived, isFull })
  }

  return { committed, rebooted, numberOf: (seq, token) => numbers.get(`${seq} ${token}`) ?? -1 }
}
