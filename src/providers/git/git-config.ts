import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/defined.ts'
import { type Folder, readIn } from './folder.ts'
import type { Launcher } from './launch.ts'
import type { ObjectFormat } from './objects.ts'

/** The settings taken from the configuration of a repository. git never sees any other setting of it. */
export interface RepositoryConfig {
  readonly format: ObjectFormat
  /** Whether objects may be missing, for a later fetch (which never happens here). */
  readonly partial: boolean
  /** `core.worktree`, as written. */
  readonly workTree?: string
  /** Check-out settings, as lines for the provider's own configuration: needed to compare the files. */
  readonly checkout: readonly string[]
}

const maxConfig = 1024 * 1024

/** Names of the check-out settings, and the only values that are accepted. */
const checkout = /^core\.(?:autocrlf|eol|filemode|ignorecase|symlinks|precomposeunicode|checkstat|trustctime)$/
const plain = /^(?:true|false|input|lf|crlf|native|minimal|default)$/

/**
 * Reads the configuration of a git directory as data: git parses the text, without includes, and applies nothing of it.
 *
 * @throws ResourceError `invalid` (reason `repository`) for a file that cannot be read or parsed, and for an unknown repository format.
 */
export async function readConfig(gitDir: Folder, launcher: Launcher): Promise<RepositoryConfig> {
  const values = await parse(await load(gitDir), launcher)
  const format = values.get('extensions.objectformat') ?? 'sha1'
  if (format !== 'sha1' && format !== 'sha256')
    throw fault(`uses object ids of a kind that is not known: ${JSON.stringify(format)}.`)
  const storage = values.get('extensions.refstorage') ?? 'files'
  if (storage !== 'files')
    throw fault(
      `keeps its refs in a format that is not served: ${JSON.stringify(storage)}. Run git refs migrate --ref-format=files.`,
    )
  const workTree = values.get('core.worktree')
  return {
    format,
    partial: [...values].some(([key, value]) => key === 'extensions.partialclone' || isPromisor(key, value)),
    ...defined({ workTree }),
    checkout: [...values].flatMap(([key, value]) =>
      checkout.test(key) && plain.test(value) ? [`${key.slice('core.'.length)} = ${value}`] : [],
    ),
  }
}

function isPromisor(key: string, value: string): boolean {
  return /^remote\..*\.promisor$/s.test(key) && value !== 'false'
}

async function load(gitDir: Folder): Promise<Buffer> {
  try {
    return (await readIn(gitDir, 'config', maxConfig)) ?? Buffer.alloc(0)
  } catch (error) {
    throw fault(`has a config that cannot be read: ${error instanceof Error ? error.message : 'unknown'}.`)
  }
}

/** Returns the last value of every key, with the letter case that git prints. */
async function parse(text: Buffer, launcher: Launcher): Promise<ReadonlyMap<string, string>> {
  const { bytes, code } = await launcher.run({
    args: ['config', '--file', '-', '--no-includes', '--null', '--list'],
    input: text,
    limit: 2 * maxConfig,
    signal: new AbortController().signal,
    allows: [1, 128],
    // Error messages of git would repeat the content of the file.
    quiet: true,
  })
  if (code !== 0) throw fault('has a config that git cannot parse. See git config --list there.')
  const records = bytes.toString('utf8').split('\0')
  return new Map(
    records
      .filter((record) => record !== '')
      .map((record) => {
        const end = record.indexOf('\n')
        // A key without a value means true.
        return end === -1 ? [record, 'true'] : [record.slice(0, end), record.slice(end + 1)]
      }),
  )
}

function fault(what: string) {
  return invalid(`The repository ${what}`, 'repository')
}
