import { defined } from '../../core/kit/object.ts'
import * as z from '../../schema/builder.ts'
import { text } from '../../schema/fields.ts'
import { pathEffects, serviceEffects } from '../../schema/shapes.ts'
import { resolveConfigPath } from '../../schema/values.ts'
import { bucketOptions, objectsEffects, objectsShape } from '../objects/config.ts'
import { s3Shape } from '../s3/config.ts'
import { defineSourceSchema, type OpenSource } from '../source.ts'

const gcsShape = {
  ...objectsShape,
  endpoint: text.optionalKey(
    'The URL of another server with this API, such as "http://127.0.0.1:4443". By default the API of Google.',
  ),
  insecure: s3Shape.insecure,
  keyFile: text.optionalKey(
    'A file with the key of a service account, relative to the configuration file. By default the application default credentials.',
  ),
  userProject: text.optionalKey('The project that pays for requests. By default the project of the bucket.'),
  anonymous: z
    .boolean()
    .optionalKey('Sends no credentials, for public buckets. By default false: without credentials no request is sent.'),
}

export const source = defineSourceSchema({
  about: 'The objects of a bucket of Google Cloud Storage.',
  shape: gcsShape,
  needs: { keyFile: 'file' },
  effects: {
    always: ({ endpoint }) => serviceEffects(endpoint ?? 'Google Cloud Storage'),
    options: { ...objectsEffects, keyFile: pathEffects, userProject: 'none' },
  },
})

export const open: OpenSource<typeof source> = async (mountOptions, { folder, log, documents }) => {
  const { endpoint, insecure, keyFile, userProject, anonymous } = mountOptions
  const options = bucketOptions(mountOptions)
  const { gcs } = await import('./index.ts')
  const key = keyFile === undefined ? undefined : resolveConfigPath(keyFile, folder)
  return documents(
    await gcs({ ...options, ...defined({ endpoint, insecure, keyFile: key, userProject, anonymous }), log }),
  )
}
