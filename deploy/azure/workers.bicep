// Workers for questions that read much (docs/read/serve.md#workers-on-several-machines), as an Azure Container App: none runs while
// nobody asks, and each part of a question that is asked at once gets a replica.
//
//   az deployment group create -g logs -f deploy/azure/workers.bicep -p image=registry.azurecr.io/blobtail:0.9.0 \
//      store=azure:contosologs/logs identity="<resource id>" clientId="<client id>" tokens=@secrets/workers/tokens.yaml
//
// It prints the flag for `logquery serve`: the URL once for each replica, because the ingress gives
// each request to a replica that is free. The first parts of a question after a rest are read by the
// asker, until replicas have started.
targetScope = 'resourceGroup'

param location string = resourceGroup().location

param name string = 'blobtail-workers'

@description('The image of deploy/Dockerfile. A registry that asks for a name needs its entry below.')
param image string

@description('The store, azure:ACCOUNT/CONTAINER.')
param store string

@description('Resource id of a user-assigned identity with the role "blobtail reader" (deploy/azure/store.bicep).')
param identity string

@description('Client id of that identity.')
param clientId string

@description('A file of tokens with that of the asker alone: ingest token new asker --read "*" --read "_*" --file FILE.')
@secure()
param tokens string

@description('Replicas at most, of two cores each.')
@minValue(1)
@maxValue(100)
param most int = 16

@description('Resource id of a subnet of at least /27 for the environment. Empty: Azure has one.')
param subnet string = ''

resource environment 'Microsoft.App/managedEnvironments@2024-03-01' = {
  name: name
  location: location
  properties: {
    vnetConfiguration: empty(subnet) ? null : {
      infrastructureSubnetId: subnet
      internal: true
    }
    workloadProfiles: [
      {
        name: 'Consumption'
        workloadProfileType: 'Consumption'
      }
    ]
  }
}

resource workers 'Microsoft.App/containerApps@2024-03-01' = {
  name: name
  location: location
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identity}': {}
    }
  }
  properties: {
    environmentId: environment.id
    workloadProfileName: 'Consumption'
    configuration: {
      activeRevisionsMode: 'Single'
      // The ingress has the certificate, and passes requests on within the environment.
      ingress: {
        external: true
        targetPort: 8516
        transport: 'http'
        allowInsecure: false
      }
      secrets: [
        {
          name: 'tokens'
          value: tokens
        }
      ]
    }
    template: {
      containers: [
        {
          name: 'worker'
          image: image
          command: [
            '/usr/local/bin/logquery'
            'serve'
            '--listen=0.0.0.0:8516'
            '--behind-proxy'
            '--tokens=/etc/blobtail-access/tokens.yaml'
            '--host=${name}.${environment.properties.defaultDomain}'
          ]
          env: [
            {
              name: 'BLOBTAIL_STORE'
              value: store
            }
            {
              name: 'AZURE_CLIENT_ID'
              value: clientId
            }
            {
              name: 'GOMEMLIMIT'
              value: '3GiB'
            }
          ]
          resources: {
            cpu: json('2')
            memory: '4Gi'
          }
          volumeMounts: [
            {
              volumeName: 'access'
              mountPath: '/etc/blobtail-access'
            }
          ]
        }
      ]
      volumes: [
        {
          name: 'access'
          storageType: 'Secret'
          secrets: [
            {
              secretRef: 'tokens'
              path: 'tokens.yaml'
            }
          ]
        }
      ]
      scale: {
        minReplicas: 0
        maxReplicas: most
        rules: [
          {
            name: 'parts'
            http: {
              metadata: {
                concurrentRequests: '1'
              }
            }
          }
        ]
      }
    }
  }
}

output workers string = '--workers=${join(map(range(0, most), i => 'https://${name}.${environment.properties.defaultDomain}'), ',')}'
