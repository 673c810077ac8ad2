import { apiShape } from '../providers/api/config.ts'
import { envShape } from '../providers/env/config.ts'
import { filesShape } from '../providers/files/config.ts'
import { gcsShape } from '../providers/gcs/config.ts'
import { checkGdrive, gdriveShape } from '../providers/gdrive/config.ts'
import { gitShape } from '../providers/git/config.ts'
import { inlineShape } from '../providers/inline/config.ts'
import { checkMetrics, metricsShape } from '../providers/metrics/config.ts'
import { mysqlShape } from '../providers/mysql/config.ts'
import { packagesShape } from '../providers/packages/config.ts'
import { postgresShape } from '../providers/postgres/config.ts'
import { promptsShape } from '../providers/prompts/config.ts'
import { checkRemote, remoteShape } from '../providers/remote/config.ts'
import { resultsShape } from '../providers/results/config.ts'
import { s3Shape } from '../providers/s3/config.ts'
import { screenShape } from '../providers/screen/config.ts'
import { searchShape } from '../providers/search/config.ts'
import { settingsShape } from '../providers/settings/config.ts'
import { sqliteShape } from '../providers/sqlite/config.ts'
import { checkWeb, webShape } from '../providers/web/config.ts'
import * as z from '../schema/builder.ts'
import { documentsShape } from '../schema/documents.ts'
import { access, count, duration, interval, link, text } from '../schema/fields.ts'
import { refusal } from '../schema/refusals.ts'
import { scopes } from './auth.ts'

/** Keys common to the mounts of all providers. */
const mountShape = {
  title: text.exactOptional().describe('The name of the mount for people.'),
  description: text.exactOptional().describe('What is in the mount, for people and models.'),
  link: link
    .exactOptional()
    .describe(
      'Where a person opens a resource of the mount: a URL of the web with {+path}, such as "https://forge.example/blob/main/{+path}". Of a history, {ref} is the branch and {+path} what follows: "https://forge.example/blob/{ref}/{+path}". By default nothing is said.',
    ),
  access: access
    .exactOptional()
    .describe(
      'Who may see what: names of roles that may see the whole mount, or rules. What no rule allows is denied; what any rule denies is denied; what is denied is as if it were not there. Without this key everybody sees everything.',
    ),
  scopes: scopes
    .exactOptional()
    .describe(
      'The OAuth scopes that a token needs for anything in the mount, besides those that every request needs. A token without them does not see the mount, and who asks for something in it is told which scopes that takes.',
    ),
  cache: z
    .strictObject({
      ttl: duration.describe('For how long clients may keep what they got: "60s", "5m", or milliseconds.'),
      scope: z
        .enum(['public', 'private'])
        .default('private')
        .describe(
          'Whether a cache may give what one client got to another. A mount with access rules is always private.',
        ),
    })
    .exactOptional()
    .describe('For how long clients may keep what they got from the mount. By default not at all.'),
  poll: interval
    .exactOptional()
    .describe(
      'How often everything is listed and compared, so that clients are told of changes in a source that cannot tell of them by itself. By default never.',
    ),
  limits: z
    .strictObject({
      timeout: duration
        .refine((ms) => ms >= 100, { error: refusal('This is too short.', 'It must be at least "100ms".') })
        .exactOptional()
        .describe('How long the source may take for one answer. By default "30s".'),
      concurrent: count.exactOptional().describe('How many requests may be at the source at once. By default 32.'),
      waiting: count.exactOptional().describe('How many more may wait for that. By default 256.'),
      failures: count
        .exactOptional()
        .describe('After how many failures in a row the source is left alone for a while. By default 5.'),
      pause: duration
        .refine((ms) => ms >= 1, { error: refusal('This is too short.', 'It must be at least "1ms".') })
        .exactOptional()
        .describe('For how long at first; it doubles while the source stays away, up to a minute. By default "1s".'),
    })
    .exactOptional()
    .describe('What keeps a source that hangs or fails from taking everything else with it.'),
}

/** A mount: which keys it has depends on its provider. */
export const mount = z.discriminatedUnion('provider', [
  z.strictObject({
    provider: z.literal('files').describe('A folder of files.'),
    ...filesShape,
    ...documentsShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('git').describe('The history of a repository.'),
    ...gitShape,
    ...documentsShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('settings').describe('Configuration files, without their secrets.'),
    ...settingsShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('s3').describe('The objects of a bucket of Amazon S3, or of what speaks its protocol.'),
    ...s3Shape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('gcs').describe('The objects of a bucket of Google Cloud Storage.'),
    ...gcsShape,
    ...mountShape,
  }),
  z
    .strictObject({
      provider: z.literal('gdrive').describe('Files and documents of Google Drive.'),
      ...gdriveShape,
      ...mountShape,
    })
    .superRefine(checkGdrive),
  z.strictObject({
    provider: z
      .literal('postgres')
      .describe('A database of PostgreSQL: its tables, and rows where they are asked for.'),
    ...postgresShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z
      .literal('mysql')
      .describe('A database of MySQL or MariaDB: its tables, and rows where they are asked for.'),
    ...mysqlShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z
      .literal('sqlite')
      .describe('A database in a file of SQLite: its tables, and rows where they are asked for.'),
    ...sqliteShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('env').describe('Environment variables, without their secrets.'),
    ...envShape,
    ...mountShape,
  }),
  z
    .strictObject({
      provider: z.literal('metrics').describe('Measurements over time: of Prometheus, or of this server itself.'),
      ...metricsShape,
      ...mountShape,
    })
    .superRefine(checkMetrics),
  z.strictObject({
    provider: z.literal('search').describe('Search over other mounts.'),
    ...searchShape,
    ...mountShape,
  }),
  z
    .strictObject({
      provider: z.literal('remote').describe('Another MCP server: what it has, below this address.'),
      ...remoteShape,
      ...mountShape,
    })
    .superRefine(checkRemote),
  z.strictObject({
    provider: z.literal('inline').describe('Small resources that the configuration holds itself.'),
    ...inlineShape,
    ...mountShape,
  }),
  z
    .strictObject({
      provider: z.literal('web').describe('Pages of the web.'),
      ...webShape,
      ...mountShape,
    })
    .superRefine(checkWeb),
  z.strictObject({
    provider: z.literal('api').describe('An API that answers with JSON.'),
    ...apiShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('results').describe('Cached results of wall-bounce analyses.'),
    ...resultsShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z
      .literal('packages')
      .describe('Documentation and types of the packages in a lock file, at the versions that are installed.'),
    ...packagesShape,
    ...documentsShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('prompts').describe('A folder of prompts: Markdown files, which are offered as prompts too.'),
    ...promptsShape,
    ...documentsShape,
    ...mountShape,
  }),
  z.strictObject({
    provider: z.literal('screen').describe('The displays of this machine: a picture of what each shows.'),
    ...screenShape,
    ...mountShape,
    cache: z.never().exactOptional().describe('What a display shows is never kept.'),
  }),
])
