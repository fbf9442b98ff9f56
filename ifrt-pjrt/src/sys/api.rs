//! The function table.

use super::ExtensionBase;
use super::buffer::*;
use super::client::*;
use super::device::*;
use super::executable::*;
use super::status::*;

/// The version that a table states.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ApiVersion {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut ExtensionBase,
    pub(crate) major_version: i32,
    pub(crate) minor_version: i32,
}

/// The head of a table, before its first slot.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ApiHeader {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut ExtensionBase,
    pub(crate) version: ApiVersion,
}

const _: () = {
    assert!(std::mem::offset_of!(ApiHeader, version) == 16);
    assert!(std::mem::offset_of!(ApiHeader, version.major_version) == 32);
    assert!(std::mem::offset_of!(ApiHeader, version.minor_version) == 36);
    assert!(size_of::<ApiHeader>() == 40);
};

pjrt_table! {
    /// `PJRT_Api`, the table that a plugin hands out.
    Api: 40..1144, API {
        40 "PJRT_Error_Destroy" 0 => ErrorDestroy(ErrorDestroyArgs) -> ();
        48 "PJRT_Error_Message" 0 => ErrorMessage(ErrorMessageArgs) -> ();
        56 "PJRT_Error_GetCode" 0 => ErrorGetCode(ErrorGetCodeArgs);
        64 "PJRT_Plugin_Initialize" 0 => PluginInitialize(PluginInitializeArgs);
        72 "PJRT_Plugin_Attributes" 0 => PluginAttributes(PluginAttributesArgs);
        80 "PJRT_Event_Destroy" 0 => EventDestroy(EventDestroyArgs);
        88 "PJRT_Event_IsReady" 0 => EventIsReady(EventIsReadyArgs);
        96 "PJRT_Event_Error" 0 => EventError(EventErrorArgs);
        104 "PJRT_Event_Await" 0;
        112 "PJRT_Event_OnReady" 0 => EventOnReady(EventOnReadyArgs);
        120 "PJRT_Client_Create" 0 => ClientCreate(ClientCreateArgs);
        128 "PJRT_Client_Destroy" 0 => ClientDestroy(ClientDestroyArgs);
        136 "PJRT_Client_PlatformName" 0 => ClientPlatformName(ClientPlatformNameArgs);
        144 "PJRT_Client_ProcessIndex" 0 => ClientProcessIndex(ClientProcessIndexArgs);
        152 "PJRT_Client_PlatformVersion" 0 => ClientPlatformVersion(ClientPlatformVersionArgs);
        160 "PJRT_Client_Devices" 0 => ClientDevices(ClientDevicesArgs);
        168 "PJRT_Client_AddressableDevices" 0;
        176 "PJRT_Client_LookupDevice" 0;
        184 "PJRT_Client_LookupAddressableDevice" 0;
        192 "PJRT_Client_AddressableMemories" 0
            => ClientAddressableMemories(ClientAddressableMemoriesArgs);
        200 "PJRT_Client_Compile" 0 => ClientCompile(ClientCompileArgs);
        208 "PJRT_Client_DefaultDeviceAssignment" 0
            => ClientDefaultDeviceAssignment(ClientDefaultDeviceAssignmentArgs);
        216 "PJRT_Client_BufferFromHostBuffer" 0
            => ClientBufferFromHostBuffer(ClientBufferFromHostBufferArgs);
        224 "PJRT_DeviceDescription_Id" 0 => DeviceDescriptionId(DeviceDescriptionIdArgs);
        232 "PJRT_DeviceDescription_ProcessIndex" 0
            => DeviceDescriptionProcessIndex(DeviceDescriptionProcessIndexArgs);
        240 "PJRT_DeviceDescription_Attributes" 0
            => DeviceDescriptionAttributes(DeviceDescriptionAttributesArgs);
        248 "PJRT_DeviceDescription_Kind" 0 => DeviceDescriptionKind(DeviceDescriptionKindArgs);
        256 "PJRT_DeviceDescription_DebugString" 0
            => DeviceDescriptionDebugString(DeviceDescriptionDebugStringArgs);
        264 "PJRT_DeviceDescription_ToString" 0
            => DeviceDescriptionToString(DeviceDescriptionToStringArgs);
        272 "PJRT_Device_GetDescription" 0 => DeviceGetDescription(DeviceGetDescriptionArgs);
        280 "PJRT_Device_IsAddressable" 0 => DeviceIsAddressable(DeviceIsAddressableArgs);
        288 "PJRT_Device_LocalHardwareId" 0 => DeviceLocalHardwareId(DeviceLocalHardwareIdArgs);
        296 "PJRT_Device_AddressableMemories" 0
            => DeviceAddressableMemories(DeviceAddressableMemoriesArgs);
        304 "PJRT_Device_DefaultMemory" 0 => DeviceDefaultMemory(DeviceDefaultMemoryArgs);
        312 "PJRT_Device_MemoryStats" 0;
        320 "PJRT_Memory_Id" 0 => MemoryId(MemoryIdArgs);
        328 "PJRT_Memory_Kind" 0 => MemoryKind(MemoryKindArgs);
        336 "PJRT_Memory_DebugString" 0 => MemoryDebugString(MemoryDebugStringArgs);
        344 "PJRT_Memory_ToString" 0 => MemoryToString(MemoryToStringArgs);
        352 "PJRT_Memory_AddressableByDevices" 0
            => MemoryAddressableByDevices(MemoryAddressableByDevicesArgs);
        360 "PJRT_Executable_Destroy" 0 => ExecutableDestroy(ExecutableDestroyArgs);
        368 "PJRT_Executable_Name" 0 => ExecutableName(ExecutableNameArgs);
        376 "PJRT_Executable_NumReplicas" 0 => ExecutableNumReplicas(ExecutableNumReplicasArgs);
        384 "PJRT_Executable_NumPartitions" 0
            => ExecutableNumPartitions(ExecutableNumPartitionsArgs);
        392 "PJRT_Executable_NumOutputs" 0 => ExecutableNumOutputs(ExecutableNumOutputsArgs);
        400 "PJRT_Executable_SizeOfGeneratedCodeInBytes" 0
            => ExecutableSizeOfGeneratedCodeInBytes(ExecutableSizeOfGeneratedCodeInBytesArgs);
        408 "PJRT_Executable_GetCostAnalysis" 0
            => ExecutableGetCostAnalysis(ExecutableGetCostAnalysisArgs);
        416 "PJRT_Executable_OutputMemoryKinds" 0
            => ExecutableOutputMemoryKinds(ExecutableOutputMemoryKindsArgs);
        424 "PJRT_Executable_OptimizedProgram" 0
            => ExecutableOptimizedProgram(ExecutableOptimizedProgramArgs);
        432 "PJRT_Executable_Serialize" 0 => ExecutableSerialize(ExecutableSerializeArgs);
        440 "PJRT_LoadedExecutable_Destroy" 0
            => LoadedExecutableDestroy(LoadedExecutableDestroyArgs);
        448 "PJRT_LoadedExecutable_GetExecutable" 0
            => LoadedExecutableGetExecutable(LoadedExecutableGetExecutableArgs);
        456 "PJRT_LoadedExecutable_AddressableDevices" 0
            => LoadedExecutableAddressableDevices(LoadedExecutableAddressableDevicesArgs);
        464 "PJRT_LoadedExecutable_Delete" 0;
        472 "PJRT_LoadedExecutable_IsDeleted" 0;
        480 "PJRT_LoadedExecutable_Execute" 0
            => LoadedExecutableExecute(LoadedExecutableExecuteArgs);
        488 "PJRT_Executable_DeserializeAndLoad" 0
            => ExecutableDeserializeAndLoad(ExecutableDeserializeAndLoadArgs);
        496 "PJRT_LoadedExecutable_Fingerprint" 0;
        504 "PJRT_Buffer_Destroy" 0 => BufferDestroy(BufferDestroyArgs);
        512 "PJRT_Buffer_ElementType" 0;
        520 "PJRT_Buffer_Dimensions" 0;
        528 "PJRT_Buffer_UnpaddedDimensions" 0;
        536 "PJRT_Buffer_DynamicDimensionIndices" 0;
        544 "PJRT_Buffer_GetMemoryLayout" 0;
        552 "PJRT_Buffer_OnDeviceSizeInBytes" 0
            => BufferOnDeviceSizeInBytes(BufferOnDeviceSizeInBytesArgs);
        560 "PJRT_Buffer_Device" 0;
        568 "PJRT_Buffer_Memory" 0;
        576 "PJRT_Buffer_Delete" 0;
        584 "PJRT_Buffer_IsDeleted" 0 => BufferIsDeleted(BufferIsDeletedArgs);
        592 "PJRT_Buffer_CopyToDevice" 0 => BufferCopyToDevice(BufferCopyToDeviceArgs);
        600 "PJRT_Buffer_ToHostBuffer" 0 => BufferToHostBuffer(BufferToHostBufferArgs);
        608 "PJRT_Buffer_IsOnCpu" 0;
        616 "PJRT_Buffer_ReadyEvent" 0 => BufferReadyEvent(BufferReadyEventArgs);
        624 "PJRT_Buffer_UnsafePointer" 0;
        632 "PJRT_Buffer_IncreaseExternalReferenceCount" 0
            => BufferIncreaseExternalReferenceCount(BufferIncreaseExternalReferenceCountArgs);
        640 "PJRT_Buffer_DecreaseExternalReferenceCount" 0
            => BufferDecreaseExternalReferenceCount(BufferDecreaseExternalReferenceCountArgs);
        648 "PJRT_Buffer_OpaqueDeviceMemoryDataPointer" 0
            => BufferOpaqueDeviceMemoryDataPointer(BufferOpaqueDeviceMemoryDataPointerArgs);
        656 "PJRT_CopyToDeviceStream_Destroy" 0;
        664 "PJRT_CopyToDeviceStream_AddChunk" 0;
        672 "PJRT_CopyToDeviceStream_TotalBytes" 0;
        680 "PJRT_CopyToDeviceStream_GranuleSize" 0;
        688 "PJRT_CopyToDeviceStream_CurrentBytes" 0;
        696 "PJRT_TopologyDescription_Create" 0;
        704 "PJRT_TopologyDescription_Destroy" 0;
        712 "PJRT_TopologyDescription_PlatformName" 0;
        720 "PJRT_TopologyDescription_PlatformVersion" 0;
        728 "PJRT_TopologyDescription_GetDeviceDescriptions" 0;
        736 "PJRT_TopologyDescription_Serialize" 0;
        744 "PJRT_TopologyDescription_Attributes" 0;
        752 "PJRT_Compile" 0;
        760 "PJRT_Executable_OutputElementTypes" 29
            => ExecutableOutputElementTypes(ExecutableOutputElementTypesArgs);
        768 "PJRT_Executable_OutputDimensions" 29
            => ExecutableOutputDimensions(ExecutableOutputDimensionsArgs);
        776 "PJRT_Buffer_CopyToMemory" 32 => BufferCopyToMemory(BufferCopyToMemoryArgs);
        784 "PJRT_Client_CreateViewOfDeviceBuffer" 33;
        792 "PJRT_Executable_Fingerprint" 35 => ExecutableFingerprint(ExecutableFingerprintArgs);
        800 "PJRT_Client_TopologyDescription" 36;
        808 "PJRT_Executable_GetCompiledMemoryStats" 40
            => ExecutableGetCompiledMemoryStats(ExecutableGetCompiledMemoryStatsArgs);
        816 "PJRT_Memory_Kind_Id" 48;
        824 "PJRT_ExecuteContext_Create" 52;
        832 "PJRT_ExecuteContext_Destroy" 52;
        840 "PJRT_Buffer_CopyRawToHost" 56;
        848 "PJRT_AsyncHostToDeviceTransferManager_Destroy" 60;
        856 "PJRT_AsyncHostToDeviceTransferManager_TransferData" 60;
        864 "PJRT_Client_CreateBuffersForAsyncHostToDevice" 60;
        872 "PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer" 62;
        880 "PJRT_AsyncHostToDeviceTransferManager_Device" 62;
        888 "PJRT_AsyncHostToDeviceTransferManager_BufferCount" 62;
        896 "PJRT_AsyncHostToDeviceTransferManager_BufferSize" 62;
        904 "PJRT_AsyncHostToDeviceTransferManager_SetBufferError" 62;
        912 "PJRT_AsyncHostToDeviceTransferManager_AddMetadata" 62;
        920 "PJRT_Client_DmaMap" 67;
        928 "PJRT_Client_DmaUnmap" 67;
        936 "PJRT_Client_CreateUninitializedBuffer" 69;
        944 "PJRT_Client_UpdateGlobalProcessInfo" 73;
        952 "PJRT_TopologyDescription_Deserialize" 75;
        960 "PJRT_Client_CreateAliasBuffer" 77
            => ClientCreateAliasBuffer(ClientCreateAliasBufferArgs);
        968 "PJRT_Client_FulfillAliasBuffer" 77
            => ClientFulfillAliasBuffer(ClientFulfillAliasBufferArgs);
        976 "PJRT_LoadedExecutable_GetDeviceAssignment" 79
            => LoadedExecutableGetDeviceAssignment(LoadedExecutableGetDeviceAssignmentArgs);
        984 "PJRT_Client_CreateErrorBuffer" 82
            => ClientCreateErrorBuffer(ClientCreateErrorBufferArgs);
        992 "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral" 83;
        1000 "PJRT_Buffer_CopyRawToHostFuture" 84;
        1008 "PJRT_Device_PoisonExecution" 85;
        1016 "PJRT_Device_CreateAsyncTrackingEvent" 86;
        1024 "PJRT_AsyncTrackingEvent_Destroy" 86;
        1032 "PJRT_Executable_GetCompileOptions" 87;
        1040 "PJRT_Buffer_DonateWithControlDependency" 88;
        1048 "PJRT_Event_Create" 89;
        1056 "PJRT_Event_Set" 89;
        1064 "PJRT_Device_GetAttributes" 92;
        1072 "PJRT_Client_Load" 95;
        1080 "PJRT_LoadedExecutable_AddressableDeviceLogicalIds" 96;
        1088 "PJRT_Buffer_Bitcast" 98 => BufferBitcast(BufferBitcastArgs);
        1096 "PJRT_Error_ForEachPayload" 99 => ErrorForEachPayload(ErrorForEachPayloadArgs);
        1104 "PJRT_TopologyDescription_Fingerprint" 101;
        1112 "PJRT_Executable_ParameterMemoryKinds" 102;
        1120 "PJRT_Device_ClearMemoryStats" 106;
        1128 "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace" 109;
        1136 "PJRT_TopologyDescription_GetMemorySpaceKindIds" 110;
    }
}
