/** The URI of the overview that a server of this project lists first. It is about the server, and no document of it. */
export const overviewUri = 'hikidashi://overview'
