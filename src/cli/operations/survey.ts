import { type Survey, surveyFolder } from '../../config/survey.ts'
import { defined } from '../../core/kit/defined.ts'
import { apiIn, type DescribedApi } from './survey-api.ts'
import { type DescribedServer, serversIn } from './survey-servers.ts'

/** Findings of `init` in a folder. */
export interface Found extends Survey {
  /** The API that a description in the folder is of. */
  readonly api?: DescribedApi
  /** Servers that files of hosts in the folder name. */
  readonly servers?: readonly DescribedServer[]
}

/** Looks at a folder for `init`. Rejects as `readdir` does for one that cannot be read. */
export async function surveyAll(folder: string): Promise<Found> {
  const survey = await surveyFolder(folder)
  const api = await apiIn(folder)
  const servers = await serversIn(folder)
  return { ...survey, ...defined({ api }), ...(servers.length === 0 ? {} : { servers }) }
}
