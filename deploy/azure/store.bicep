// A storage account for blobtail: one container, soft delete, tiers by age, and
// roles of which one alone may delete.
//
//   az deployment group create -g logs -f deploy/azure/store.bicep -p account=contosologs \
//      ingesters='["<principal id>"]' readers='["<principal id>"]' retention='["<principal id>"]'
//
// The account is for blobtail alone: the tables of an account belong to all of
// its containers, and making and listing them are rights on the account.
targetScope = 'resourceGroup'

@description('Name of the storage account, unique in the world.')
@minLength(3)
@maxLength(24)
param account string

param location string = resourceGroup().location

@description('Zones or regions that each byte is in.')
param sku string = 'Standard_ZRS'

@description('Name of the container: azure:ACCOUNT/CONTAINER.')
param container string = 'logs'

@description('Principal ids of the identities that ingesters have.')
param ingesters array = []

@description('Principal ids of those that read.')
param readers array = []

@description('Principal ids of the scheduled job. One is enough, and nothing else should have it.')
param retention array = []

@description('Days after which a blob is moved to the cool tier; there it is paid for at least 30 days.')
@minValue(1)
param coolAfterDays int = 30

@description('Days after which a blob is moved to the cold tier; there it is paid for at least 90 days.')
@minValue(1)
param coldAfterDays int = 90

@description('Days that what was deleted can be brought back, and is paid for.')
@minValue(1)
@maxValue(365)
param undeleteDays int = 7

@description('Vault of a key of your own, https://NAME.vault.azure.net. Empty: Microsoft has the key.')
param keyVault string = ''

@description('Name of the key in the vault.')
param keyName string = ''

@description('Resource id of a user-assigned identity that may use the key (Key Vault Crypto Service Encryption User).')
param keyIdentity string = ''

@description('Encryption scope of the account that the container has in place of the key of the account.')
param encryptionScope string = ''

resource storage 'Microsoft.Storage/storageAccounts@2023-05-01' = {
  name: account
  location: location
  kind: 'StorageV2'
  sku: {
    name: sku
  }
  identity: empty(keyVault) ? null : {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${keyIdentity}': {}
    }
  }
  properties: {
    encryption: empty(keyVault) ? null : {
      keySource: 'Microsoft.Keyvault'
      identity: {
        userAssignedIdentity: keyIdentity
      }
      // Without a version the newest one is taken, so a key can be rotated.
      keyvaultproperties: {
        keyvaulturi: keyVault
        keyname: keyName
      }
      // Tables have the newest records. Their key is that of the account only if the account
      // is made so: give the parameters with the first deployment.
      services: {
        blob: {
          enabled: true
          keyType: 'Account'
        }
        table: {
          enabled: true
          keyType: 'Account'
        }
      }
    }
    accessTier: 'Hot'
    allowBlobPublicAccess: false
    // A key could do everything, whatever the roles say.
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    // Lists of a hierarchical namespace are not in the order of the names.
    isHnsEnabled: false
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2023-05-01' = {
  parent: storage
  name: 'default'
  properties: {
    // Blobs are never overwritten, so versions would only keep what was deleted,
    // and longer than soft delete does.
    isVersioningEnabled: false
    // Against a policy that was a mistake. A secret that leaked into a log stays
    // that long too.
    deleteRetentionPolicy: {
      enabled: true
      days: undeleteDays
    }
    containerDeleteRetentionPolicy: {
      enabled: true
      days: undeleteDays
    }
  }
}

resource logs 'Microsoft.Storage/storageAccounts/blobServices/containers@2023-05-01' = {
  parent: blobs
  name: container
  properties: union({
    publicAccess: 'None'
  }, empty(encryptionScope) ? {} : {
    defaultEncryptionScope: encryptionScope
    denyEncryptionScopeOverride: true
  })
}

// Moves old days to cheaper tiers, by the time of the upload, and deletes nothing:
// a rule that deletes tells neither readers nor ingesters, and its days go missing
// without a word. That is what the command retention is for. Nor is there an
// archive tier: what is there cannot be read.
resource tiering 'Microsoft.Storage/storageAccounts/managementPolicies@2023-05-01' = {
  parent: storage
  name: 'default'
  dependsOn: [
    blobs
  ]
  properties: {
    policy: {
      rules: [
        {
          name: 'blobtail-old-days'
          enabled: true
          type: 'Lifecycle'
          definition: {
            filters: {
              blobTypes: [
                'blockBlob'
              ]
              prefixMatch: [
                '${container}/'
              ]
            }
            actions: {
              baseBlob: {
                tierToCool: {
                  daysAfterModificationGreaterThan: coolAfterDays
                }
                tierToCold: {
                  daysAfterModificationGreaterThan: coldAfterDays
                }
              }
            }
          }
        }
      ]
    }
  }
}

// What each may do is in roles/, for az role definition create as well.
var ingester = loadJsonContent('roles/ingester.json')
var reader = loadJsonContent('roles/reader.json')
var job = loadJsonContent('roles/retention.json')

resource definitions 'Microsoft.Authorization/roleDefinitions@2022-04-01' = [for role in [ingester, reader, job]: {
  name: guid(resourceGroup().id, account, role.Name)
  properties: {
    // Names of roles are unique in the tenant.
    roleName: '${role.Name} (${account})'
    description: role.Description
    type: 'CustomRole'
    permissions: [
      {
        actions: role.Actions
        notActions: role.NotActions
        dataActions: role.DataActions
        notDataActions: role.NotDataActions
      }
    ]
    assignableScopes: [
      resourceGroup().id
    ]
  }
}]

resource ingesting 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for id in ingesters: {
  scope: storage
  name: guid(storage.id, id, ingester.Name)
  properties: {
    roleDefinitionId: definitions[0].id
    principalId: id
  }
}]

resource reading 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for id in readers: {
  scope: storage
  name: guid(storage.id, id, reader.Name)
  properties: {
    roleDefinitionId: definitions[1].id
    principalId: id
  }
}]

resource deleting 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for id in retention: {
  scope: storage
  name: guid(storage.id, id, job.Name)
  properties: {
    roleDefinitionId: definitions[2].id
    principalId: id
  }
}]

@description('For --store, or BLOBTAIL_STORE.')
output store string = 'azure:${account}/${container}'
