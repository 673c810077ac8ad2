import * as z from '../../schema/builder.ts'
import { secrets, service } from '../../schema/effects.ts'
import { secret, text } from '../../schema/fields.ts'
import { objectsEffects, objectsShape } from '../objects/config.ts'
import { defineSource } from '../source.ts'

/** The options of a mount whose provider is `s3`. */
export const s3Shape = {
  ...objectsShape,
  endpoint: text
    .exactOptional()
    .describe(
      'Where the store is, such as "https://storage.example.com" or "http://127.0.0.1:9000". By default that of AWS, as the official client finds it.',
    ),
  insecure: z
    .boolean()
    .exactOptional()
    .describe(
      'Lets an endpoint beyond this machine be http://: whoever is on the way there can read and change what is served. By default false.',
    ),
  region: text
    .exactOptional()
    .describe('The region. By default what AWS_REGION or the profile says; at an endpoint "us-east-1".'),
  pathStyle: z
    .boolean()
    .exactOptional()
    .describe(
      'Puts the bucket into the path of requests, not before the name of the host. By default true at an endpoint.',
    ),
  accessKeyId: secret
    .exactOptional()
    .describe(
      'Where the access key is: { "env": "NAME" } or { "file": "path" }. By default the official client looks for credentials: environment, profile, files, container.',
    ),
  secretAccessKey: secret.exactOptional().describe('Where its secret is.'),
  sessionToken: secret.exactOptional().describe('Where the session token is, if the credentials have one.'),
  profile: text.exactOptional().describe('A profile of the shared configuration files of AWS.'),
  anonymous: z
    .boolean()
    .exactOptional()
    .describe('Signs nothing: for public buckets. By default false: without credentials nothing is asked.'),
  requesterPays: z.boolean().exactOptional().describe('Agrees to pay for what is read. By default false.'),
}

export const source = defineSource({
  about: 'The objects of a bucket of Amazon S3, or of what speaks its protocol.',
  shape: s3Shape,
  effects: {
    always: ({ endpoint }) => service(endpoint ?? 'Amazon S3'),
    options: {
      ...objectsEffects,
      region: 'none',
      pathStyle: 'none',
      accessKeyId: secrets,
      secretAccessKey: secrets,
      sessionToken: secrets,
      profile: 'none',
      requesterPays: 'none',
    },
  },
})
