/** ElasticMQ, from Maven Central, on this machine's Java. https://github.com/softwaremill/elasticmq */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { region } from "./address.ts"
import { run } from "../installer.ts"
import { hasCommand, installOnce } from "../installOnce.ts"
import type { Server } from "./Server.ts"

export const version = "1.7.1"

/** Makes its config file. With it, queue URLs have the host of the request. */
export const configuration = (host: string, port: number): string => `include classpath("application.conf")
node-address { protocol = http, host = "*", port = ${port}, context-path = "" }
rest-sqs { enabled = true, bind-hostname = "${host}", bind-port = ${port}, sqs-limits = strict }
rest-stats { enabled = false }
aws { region = ${region}, accountId = "000000000000" }
`

const pom = `<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>requeue</groupId><artifactId>elasticmq</artifactId><version>0</version>
  <dependencies>
    <dependency>
      <groupId>org.elasticmq</groupId><artifactId>elasticmq-server_2.13</artifactId><version>${version}</version>
    </dependency>
  </dependencies>
</project>
`

/** Downloads its jars, unless they exist. */
export const install = async (say: (line: string) => void): Promise<Server> => {
  await hasCommand("java", "-version")
  const jars = await installOnce(`elasticmq-${version}`, "about 40 MB from Maven Central", say, async (folder) => {
    await hasCommand("mvn", "--version")
    const file = join(folder, "pom.xml")
    writeFileSync(file, pom)
    await run("mvn", ["-q", "-B", "-f", file, "dependency:copy-dependencies", `-DoutputDirectory=${folder}`])
  })
  return {
    name: "elasticmq",
    version,
    source: jars,
    command: "java",
    args: (port, folder) => {
      const file = join(folder, "elasticmq.conf")
      writeFileSync(file, configuration("127.0.0.1", port))
      return [`-Dconfig.file=${file}`, "-cp", join(jars, "*"), "org.elasticmq.server.Main"]
    }
  }
}
