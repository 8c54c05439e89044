/**
 * Faults of single calls. A trigger finds the call by what it does to the rows of a queue, and raises an error or a notice with the
 * number of the fault; a proxy between the adapter and the server reads it in the server's answer.
 */
import { proxy, type TcpProxy } from "@requeue/brokers"
import type { Harness } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import type { Client } from "pg"

/**
 * Each fault happens to one statement: a sequence counts also the calls of transactions that are rolled back. A publish stores a message
 * or its copy; a claim changes the token, a settlement raises it, an extension keeps it.
 */
export const install = (schema: string): string => `
  CREATE TABLE ${schema}.fault (id serial PRIMARY KEY, operation text, kind text, queue text);
  CREATE FUNCTION ${schema}.fail() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    found ${schema}.fault;
  BEGIN
    FOR found IN SELECT * FROM ${schema}.fault f WHERE
      (f.operation = 'publish' AND TG_OP <> 'DELETE' AND NEW.leased = 0 AND NEW.queue IN (f.queue, f.queue || '.dlq')
        AND (TG_OP = 'INSERT' OR (OLD.leased > 0 AND NEW.metadata IS DISTINCT FROM OLD.metadata)))
      OR (f.operation <> 'publish' AND TG_OP <> 'INSERT' AND OLD.queue IN (f.queue, f.queue || '.dlq') AND (
        (f.operation = 'settle' AND OLD.leased > 0 AND (TG_OP = 'DELETE' OR (NEW.leased = 0 AND NEW.token > OLD.token)))
        OR (TG_OP = 'UPDATE' AND f.operation = 'receive' AND NEW.leased > 0 AND NEW.token <> OLD.token)
        OR (TG_OP = 'UPDATE' AND f.operation = 'extend' AND NEW.leased > 0 AND OLD.leased > 0 AND NEW.token = OLD.token)))
    LOOP
      IF nextval(format('${schema}.fault_%s', found.id)) > 1 THEN CONTINUE; END IF;
      IF found.kind IN ('refused', 'lostRequest') THEN
        RAISE EXCEPTION 'fault % %;', found.id, found.kind USING ERRCODE = '53100';
      END IF;
      RAISE NOTICE 'fault % %;', found.id, found.kind;
    END LOOP;
    RETURN COALESCE(NEW, OLD);
  END $$;
  CREATE TRIGGER fail BEFORE INSERT OR UPDATE OR DELETE ON ${schema}.message FOR EACH ROW EXECUTE FUNCTION ${schema}.fail();`

/** Runs a call on a connection that does not pass the proxy. */
type Sql = <A>(run: (client: Client) => Promise<A>) => Effect.Effect<A>

/** A proxy that causes faults. */
export interface Faulty extends TcpProxy {
  readonly failNext: (sql: Sql, schema: string) => Harness.FailNext
}

interface Armed {
  happened: boolean
  /** Until then, a late answer waits. */
  readonly over: Promise<void>
}

/** Whether an answer is complete: the transaction has ended. https://www.postgresql.org/docs/current/protocol-message-formats.html */
const isAnswered = (bytes: Buffer): boolean => bytes.subarray(-6, -1).equals(Buffer.from([0x5a, 0, 0, 0, 5]))

export const faulty = async (port: number): Promise<Faulty> => {
  const armed = new Map<number, Armed>()
  const holds = new Map<number, (until: Promise<void>) => void>()
  const between = await proxy(
    port,
    undefined,
    (connection, hold) => {
      holds.set(connection, hold)
      return () => undefined
    },
    (connection) => {
      /** Whether the answer of the running statement is lost. */
      let isLost = false
      return (bytes) => {
        const [, id, kind] = /fault (\d+) (\w+);/.exec(bytes.toString("latin1")) ?? []
        const fault = armed.get(Number(id))
        if (fault !== undefined) fault.happened = true
        if (kind === "lostRequest") return undefined
        if (kind === "lateAnswer" && fault !== undefined) holds.get(connection)?.(fault.over)
        isLost ||= kind === "lostAnswer"
        if (!isLost) return bytes
        return isAnswered(bytes) ? undefined : Buffer.alloc(0)
      }
    }
  )
  const failNext: Faulty["failNext"] = (sql, schema) => (operation, failure, queue) => {
    const arm = sql(async (client) => {
      const { promise: over, resolve } = Promise.withResolvers<void>()
      const { rows } = await client.query<{ id: number }>("SELECT nextval($1)::int AS id", [`${schema}.fault_id_seq`])
      const { id } = rows[0]!
      const fault: Armed = { happened: false, over }
      armed.set(id, fault)
      await client.query(`CREATE SEQUENCE ${schema}.fault_${id}`)
      await client.query(`INSERT INTO ${schema}.fault VALUES ($1, $2, $3, $4)`, [id, operation, failure, queue])
      return { id, fault, resolve }
    })
    const disarm = ({ id, resolve }: Effect.Success<typeof arm>) =>
      sql(async (client) => {
        resolve()
        armed.delete(id)
        await client.query(`DELETE FROM ${schema}.fault WHERE id = $1`, [id])
      })
    return Effect.map(
      Effect.acquireRelease(arm, disarm),
      ({ fault }) =>
        () =>
          fault.happened
    )
  }
  return { ...between, failNext }
}
