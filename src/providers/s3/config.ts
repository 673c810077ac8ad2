import { invalid } from '../../core/errors.ts'
import { defined } from '../../core/kit/object.ts'
import * as z from '../../schema/builder.ts'
import { secret, text } from '../../schema/fields.ts'
import { secretEffects, serviceEffects, withoutEffects } from '../../schema/shapes.ts'
import { readSecret } from '../../schema/values.ts'
import { bucketOptions, objectsEffects, objectsShape } from '../objects/config.ts'
import { defineSourceSchema, type OpenSource, type OptionsOf } from '../source.ts'

export const s3Shape = {
  ...objectsShape,
  endpoint: text.optionalKey(
    'The URL of the object store, such as "https://storage.example.com" or "http://127.0.0.1:9000". By default AWS, as the official client finds it.',
  ),
  insecure: z
    .boolean()
    .optionalKey(
      'Allows an http:// endpoint on another machine. Anybody on the network path can then read and change the contents. By default false.',
    ),
  region: text.optionalKey(
    'The region. By default from AWS_REGION or the profile; with an endpoint from AWS_REGION, else "us-east-1".',
  ),
  pathStyle: z
    .boolean()
    .optionalKey(
      'Puts the bucket into the path of requests instead of the host name. By default true with an endpoint, or if the name of the bucket has a dot.',
    ),
  accessKeyId: secret.optionalKey(
    'The access key id, as { "env": "NAME" } or { "file": "path" }. By default the official client looks for credentials: environment, profile, files, container.',
  ),
  secretAccessKey: secret.optionalKey('The secret access key, as { "env": "NAME" } or { "file": "path" }.'),
  sessionToken: secret.optionalKey(
    'The session token, if the credentials have one, as { "env": "NAME" } or { "file": "path" }.',
  ),
  profile: text.optionalKey('A profile of the shared configuration files of AWS.'),
  anonymous: z
    .boolean()
    .optionalKey(
      'Sends unsigned requests, for public buckets. By default false: without credentials no request is sent.',
    ),
  requesterPays: z.boolean().optionalKey('Agrees to pay for requests to a requester-pays bucket. By default false.'),
}

export const source = defineSourceSchema({
  about: 'The objects of a bucket of Amazon S3, or of another store with its protocol.',
  shape: s3Shape,
  effects: {
    always: ({ endpoint }) => serviceEffects(endpoint ?? 'Amazon S3'),
    options: {
      ...objectsEffects,
      accessKeyId: secretEffects,
      secretAccessKey: secretEffects,
      sessionToken: secretEffects,
      ...withoutEffects('region pathStyle profile requesterPays'),
    },
  },
})

export const open: OpenSource<typeof source> = async (options, { folder, log, documents }) => {
  const { endpoint, insecure, region, pathStyle, profile, anonymous, requesterPays } = options
  const keys = await keysIn(options, folder)
  const { s3 } = await import('./index.ts')
  return documents(
    await s3({
      ...bucketOptions(options),
      ...defined({ endpoint, insecure, region, pathStyle, keys, profile, anonymous, requesterPays }),
      log,
    }),
  )
}

async function keysIn(options: OptionsOf<typeof s3Shape>, folder: string) {
  const { accessKeyId, secretAccessKey, sessionToken } = options
  if (accessKeyId === undefined && secretAccessKey === undefined && sessionToken === undefined) return undefined
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw invalid(
      'An access key has two parts. Add "accessKeyId" and "secretAccessKey", or remove them.',
      'configuration',
    )
  const token = sessionToken === undefined ? undefined : await readSecret('sessionToken', sessionToken, folder)
  return {
    accessKeyId: await readSecret('accessKeyId', accessKeyId, folder),
    secretAccessKey: await readSecret('secretAccessKey', secretAccessKey, folder),
    ...defined({ sessionToken: token }),
  }
}
