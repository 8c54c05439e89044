/** Checks the tables when a broker opens, and creates or migrates them. */
import type { BrokerError } from "@requeue/core/port"
import type { Settings } from "../../PostgresOptions.ts"
import * as PostgresSchema from "../../PostgresSchema.ts"
import type { Session } from "../client.ts"
import type { Statements } from "../statements.ts"
import { errors } from "../toBrokerError.ts"

/** A schema with the tables of this adapter. */
export interface Checked {
  readonly version: number
  /** Unique, also among earlier schemas of the same name. */
  readonly id: string
}

/** Returns the version of a schema; `undefined`: it has no tables. */
export const read = async (
  session: Pick<Session, "query">,
  statements: Statements,
  schema: string
): Promise<Checked | undefined> => {
  const [exists] = await session.query(statements.hasVersion, [schema])
  if (exists?.[0] !== true) return undefined
  const [row] = await session.query(statements.version, [])
  return { version: Number(row?.[0] ?? 0), id: String(row?.[1]) }
}

const tooNew = (schema: string, version: number): BrokerError.BrokerError =>
  errors.misconfigured(
    `the schema ${schema} has version ${version} of Requeue's tables, and this adapter supports ${PostgresSchema.version}`,
    "Install the version of @requeue/adapter-postgres that migrated the schema, or a newer one"
  )

const tooOld = (schema: string, found: Checked | undefined): BrokerError.BrokerError =>
  errors.misconfigured(
    found === undefined
      ? `the schema ${schema} has no tables of Requeue`
      : `the schema ${schema} has version ${found.version} of Requeue's tables, and this adapter needs ${PostgresSchema.version}`,
    "Run requeue create with a role that may create tables, or run the SQL of PostgresSchema.sql()"
  )

/** The statements wait for locks, and must see what was committed meanwhile. */
const checkIsolation = async (session: Session, statements: Statements): Promise<void> => {
  const [[isolation] = []] = await session.query(statements.isolation, [])
  if (isolation === "read committed") return
  throw errors.misconfigured(
    `the default_transaction_isolation is ${String(isolation)}, and this adapter needs read committed`,
    "Run ALTER ROLE name SET default_transaction_isolation = 'read committed'. Transactions of your programs may have any level"
  )
}

/** Returns the schema, or fails if it is missing and must not be created, has another version, or the role has another isolation. */
export const check = async (
  session: Session,
  statements: Statements,
  { create, schema }: Pick<Settings, "create" | "schema">
): Promise<Checked> => {
  await checkIsolation(session, statements)
  const found = await read(session, statements, schema)
  if (found !== undefined && found.version > PostgresSchema.version) throw tooNew(schema, found.version)
  if (found?.version === PostgresSchema.version) return found
  if (!create) throw tooOld(schema, found)
  await session.run(PostgresSchema.migration(schema))
  return (await read(session, statements, schema))!
}
