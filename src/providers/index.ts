/** Every provider that a configuration can name, with the module that makes it. Nothing is loaded until it is mounted. */
export const providers = {
  api: () => import('./api/index.ts'),
  env: () => import('./env/index.ts'),
  files: () => import('./files/index.ts'),
  gcs: () => import('./gcs/index.ts'),
  gdrive: () => import('./gdrive/index.ts'),
  git: () => import('./git/index.ts'),
  inline: () => import('./inline/index.ts'),
  mysql: () => import('./mysql/index.ts'),
  packages: () => import('./packages/index.ts'),
  postgres: () => import('./postgres/index.ts'),
  prompts: () => import('./prompts/index.ts'),
  screen: () => import('./screen/index.ts'),
  remote: () => import('./remote/index.ts'),
  results: () => import('./results/index.ts'),
  s3: () => import('./s3/index.ts'),
  metrics: () => import('./metrics/index.ts'),
  search: () => import('./search/index.ts'),
  settings: () => import('./settings/index.ts'),
  sqlite: () => import('./sqlite/index.ts'),
  web: () => import('./web/index.ts'),
} as const

/** The name of a provider, as a configuration has it. */
export type ProviderName = keyof typeof providers
